import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import javax.script.Bindings;
import org.apache.commons.configuration2.BaseConfiguration;
import org.apache.tinkerpop.gremlin.jsr223.GremlinLangScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Graph;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.structure.VertexProperty.Cardinality;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONMapper;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONVersion;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONXModuleV3;
import org.apache.tinkerpop.gremlin.tinkergraph.services.TinkerDegreeCentralityFactory;
import org.apache.tinkerpop.gremlin.tinkergraph.services.TinkerTextSearchFactory;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.AbstractTinkerGraph;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerGraph;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerIoRegistryV3;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

/**
 * Runs scripts of gremlin-lang on a TinkerGraph in this process. A request is a line: a word, a tab and a text. `load` replaces
 * the graph by a list of vertices and edges in GraphSON 3. `run` runs a script. Each request gets an answer of one line: `+`, a
 * tab and the results as a list in GraphSON 3; or `!`, a tab and the error, by the name of its class and its message.
 *
 * Usage: java -cp CLASSPATH Reference AUTOMATIC_ID_MIN SECONDS_MAX
 *
 * Elements that are created without an id are numbered from AUTOMATIC_ID_MIN. A traversal that takes longer than SECONDS_MAX is
 * an error. The error says if the traversal was stopped. If it was not, the process must be replaced, because no other request
 * will run.
 */
public final class Reference {
    /** A traversal with more results is an error. */
    private static final int RESULTS_MAX = 200_000;
    /** The end of the answer about a traversal that took too long and cannot be stopped. */
    private static final String GOES_ON = "and it goes on";

    private static long automaticIdMin;
    private static int secondsMax;
    private static TinkerGraph graph;

    public static void main(final String[] args) throws Exception {
        automaticIdMin = Long.parseLong(args[0]);
        secondsMax = Integer.parseInt(args[1]);
        load(Collections.emptyList());
        final GremlinLangScriptEngine engine = new GremlinLangScriptEngine();
        final ObjectMapper mapper = GraphSONMapper.build().version(GraphSONVersion.V3_0)
                .addCustomModule(GraphSONXModuleV3.build()).addRegistry(TinkerIoRegistryV3.instance()).create()
                .createMapper();
        final ExecutorService executor = Executors.newSingleThreadExecutor();
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            final String text = line.substring(line.indexOf('\t') + 1);
            final Callable<List<?>> work = line.startsWith("load\t")
                    ? () -> load(mapper.readValue(text, List.class)) : () -> results(engine, text);
            out.print(answer(executor, () -> mapper.writeValueAsString(work.call())) + "\n");
            out.flush();
        }
        // Ends the process even if a traversal still runs because it did not heed an interruption.
        System.exit(0);
    }

    /** Replaces the graph by these elements. Their ids are integers, like those of TinkerPop's toy graphs. */
    private static List<?> load(final List<?> elements) throws ReflectiveOperationException {
        final BaseConfiguration configuration = new BaseConfiguration();
        configuration.setProperty(Graph.GRAPH, TinkerGraph.class.getName());
        configuration.setProperty(TinkerGraph.GREMLIN_TINKERGRAPH_VERTEX_ID_MANAGER, "INTEGER");
        configuration.setProperty(TinkerGraph.GREMLIN_TINKERGRAPH_EDGE_ID_MANAGER, "INTEGER");
        configuration.setProperty(TinkerGraph.GREMLIN_TINKERGRAPH_VERTEX_PROPERTY_ID_MANAGER, "LONG");
        graph = TinkerGraph.open(configuration);
        graph.getServiceRegistry().registerService(new TinkerTextSearchFactory(graph));
        graph.getServiceRegistry().registerService(new TinkerDegreeCentralityFactory(graph));
        final Field counter = AbstractTinkerGraph.class.getDeclaredField("currentId");
        counter.setAccessible(true);
        ((AtomicLong) counter.get(graph)).set(automaticIdMin - 1);
        for (final Object element : elements) {
            if (element instanceof Vertex) add((Vertex) element); else add((Edge) element);
        }
        return Collections.emptyList();
    }

    private static void add(final Vertex vertex) {
        final Vertex added = graph.addVertex(T.id, vertex.id(), T.label, vertex.label());
        vertex.properties().forEachRemaining(property -> {
            final VertexProperty<Object> one = added.property(Cardinality.list, property.key(), property.value());
            property.properties().forEachRemaining(meta -> one.property(meta.key(), meta.value()));
        });
    }

    private static void add(final Edge edge) {
        final Vertex source = graph.vertices(edge.outVertex().id()).next();
        final Edge added = source.addEdge(edge.label(), graph.vertices(edge.inVertex().id()).next(), T.id, edge.id());
        edge.properties().forEachRemaining(property -> added.property(property.key(), property.value()));
    }

    private static List<Object> results(final GremlinLangScriptEngine engine, final String script) throws Exception {
        final Bindings bindings = engine.createBindings();
        bindings.put("g", graph.traversal());
        final Object made = engine.eval(script, bindings);
        if (!(made instanceof Traversal)) return Collections.singletonList(made);
        final List<Object> results = new ArrayList<>();
        final Traversal<?, ?> traversal = (Traversal<?, ?>) made;
        while (traversal.hasNext()) {
            if (results.size() == RESULTS_MAX) throw new IllegalStateException("too many results");
            results.add(traversal.next());
        }
        return results;
    }

    /** Returns true if the executor soon runs another task: not all code in TinkerPop heeds an interruption. */
    private static boolean isIdle(final ExecutorService executor) throws InterruptedException {
        try {
            executor.submit(() -> { }).get(1, TimeUnit.SECONDS);
            return true;
        } catch (final TimeoutException | ExecutionException e) {
            return false;
        }
    }

    private static String answer(final ExecutorService executor, final Callable<String> work) throws InterruptedException {
        final Future<String> running = executor.submit(work);
        try {
            return "+\t" + running.get(secondsMax, TimeUnit.SECONDS);
        } catch (final TimeoutException e) {
            running.cancel(true);
            final String stopped = isIdle(executor) ? "it was stopped" : GOES_ON;
            return "!\tTimeoutException: more than " + secondsMax + " s, " + stopped;
        } catch (final ExecutionException e) {
            // The script engine wraps exceptions of the parser.
            Throwable cause = e.getCause();
            while (cause instanceof javax.script.ScriptException && cause.getCause() != null) cause = cause.getCause();
            final String message = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ").trim();
            return "!\t" + cause.getClass().getSimpleName() + ": " + message;
        }
    }
}
