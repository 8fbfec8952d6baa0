// Runs when the server starts: creates the index, loads the two files, and reports the time.

import groovy.transform.CompileStatic
import org.apache.tinkerpop.gremlin.structure.T
import org.apache.tinkerpop.gremlin.structure.Vertex
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph
import org.apache.tinkerpop.gremlin.util.Gremlin

@CompileStatic
class PeersLoader {
    static void load(TinkerGraph graph) {
        final start = System.nanoTime()
        graph.createIndex('name', Vertex)
        final vertices = new ArrayList<Vertex>()
        rows('peers.people') { String[] row ->
            vertices.add(graph.addVertex(
                T.label, row[6], T.id, Long.valueOf(row[0]), 'born', Long.valueOf(row[1]), 'name', row[2],
                'code', Long.valueOf(row[3]), 'city', row[4], 'age', Long.valueOf(row[5])))
        }
        rows('peers.knows') { String[] row ->
            vertices.get(Integer.parseInt(row[0])).addEdge(
                row[3], vertices.get(Integer.parseInt(row[1])), 'since', Long.valueOf(row[2]))
        }
        final seconds = (System.nanoTime() - start) / 1e9d
        // The file gets its name after it is complete, because gremlin_side.py waits for that name.
        final report = new File(System.getProperty('peers.loaded') + '.new')
        final java = System.getProperty('java.version')
        report.text = """{"seconds": ${seconds}, "version": "${Gremlin.version()}", "java": "${java}"}"""
        report.renameTo(new File(System.getProperty('peers.loaded')))
    }

    static void rows(String property, Closure each) {
        new File(System.getProperty(property)).withReader('UTF-8') { BufferedReader reader ->
            reader.readLine() // the header
            String line
            while ((line = reader.readLine()) != null) {
                each.call((Object) line.split(','))
            }
        }
    }
}

def globals = [:]
globals << [hook: [
    onStartUp: { ctx -> PeersLoader.load((TinkerGraph) graph) },
    onShutDown: { ctx -> }
] as LifeCycleHook]
globals << [g: traversal().withEmbedded(graph)]
