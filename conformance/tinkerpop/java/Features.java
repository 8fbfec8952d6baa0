import io.cucumber.core.backend.ObjectFactory;
import io.cucumber.core.cli.Main;
import io.cucumber.java.Scenario;
import io.cucumber.plugin.ConcurrentEventListener;
import io.cucumber.plugin.event.EventPublisher;
import io.cucumber.plugin.event.TestCase;
import io.cucumber.plugin.event.TestCaseFinished;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.HashMap;
import org.apache.tinkerpop.gremlin.LoadGraphWith.GraphData;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.features.StepDefinition;
import org.apache.tinkerpop.gremlin.features.World;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

/**
 * Runs TinkerPop's feature files with TinkerPop's own step definitions. These parse the text of each traversal with the
 * official grammar, and the official driver sends it as bytecode. The outcome of each scenario is printed in one line with
 * fields between tabs: feature, name, `passed`, `skipped` or `failed`, and the error. The caller compares the outcomes.
 *
 * Usage: java -cp CLASSPATH Features HOST PORT SERIALIZER FEATURES…   (graphbinary or graphson3; files or folders)
 */
public final class Features {
    /** TinkerPop's own filter for a graph that stores no null properties. */
    private static final String LEFT_OUT = "not @AllowNullPropertyValues";
    /** Scenarios with this tag run on a source with a graph computer. */
    private static final String NEEDS_COMPUTER = "@GraphComputerOnly";

    private static String host;
    private static int port;
    private static boolean graphson;
    private static PrintStream out;

    public static void main(final String[] args) {
        host = args[0];
        port = Integer.parseInt(args[1]);
        graphson = args[2].equals("graphson3");
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        final List<String> told = new ArrayList<>(Arrays.asList("--glue", "org.apache.tinkerpop.gremlin.features",
                "--object-factory", Steps.class.getName(), "--plugin", Outcomes.class.getName(), "--tags", LEFT_OUT));
        told.addAll(Arrays.asList(args).subList(3, args.length));
        Main.run(told.toArray(new String[0]), Features.class.getClassLoader());
        // Threads of the driver may outlive their cluster.
        System.exit(0);
    }

    private static MessageSerializer<?> serializer() {
        if (!graphson) return new GraphBinaryMessageSerializerV1();
        final GraphSONMessageSerializerV3 made = new GraphSONMessageSerializerV3();
        // TinkerGraph's registry reads graphs in results.
        made.configure(Collections.singletonMap("ioRegistries", Collections.singletonList(
                "org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerIoRegistryV3")), null);
        return made;
    }

    /** A server with each of TinkerPop's graphs, under its name in the files. Connections last for one scenario. */
    public static final class Remote implements World {
        private final Map<String, GraphTraversalSource> sources = new HashMap<>();
        private Cluster cluster;
        private boolean needsComputer;

        @Override
        public GraphTraversalSource getGraphTraversalSource(final GraphData data) {
            final String name = data == null ? "ggraph" : "g" + data.name().toLowerCase();
            final GraphTraversalSource made = sources.computeIfAbsent(name, source -> AnonymousTraversalSource
                    .traversal().withRemote(DriverRemoteConnection.using(cluster, source)));
            return needsComputer ? made.withComputer() : made;
        }

        @Override
        public void beforeEachScenario(final Scenario scenario) {
            cluster = Cluster.build(host).port(port).serializer(serializer()).minConnectionPoolSize(1)
                    .maxConnectionPoolSize(1).create();
            needsComputer = false;
            getGraphTraversalSource(null).V().drop().iterate();
            needsComputer = scenario.getSourceTagNames().contains(NEEDS_COMPUTER);
        }

        @Override
        public void afterEachScenario() {
            sources.clear();
            cluster.close();
        }

        @Override
        public String convertIdToScript(final Object id, final Class<? extends Element> type) {
            return id instanceof String ? "\"" + id + "\"" : id.toString();
        }
    }

    /** Makes new step definitions for each scenario. */
    public static final class Steps implements ObjectFactory {
        private StepDefinition steps;

        @Override
        public void start() {
            steps = new StepDefinition(new Remote());
        }

        @Override
        public void stop() {
            steps = null;
        }

        @Override
        public boolean addClass(final Class<?> glue) {
            return true;
        }

        @Override
        public <T> T getInstance(final Class<T> type) {
            return type.cast(steps);
        }
    }

    /** Prints the outcome of each scenario. */
    public static final class Outcomes implements ConcurrentEventListener {
        @Override
        public void setEventPublisher(final EventPublisher publisher) {
            publisher.registerHandlerFor(TestCaseFinished.class, Outcomes::tell);
        }

        private static void tell(final TestCaseFinished event) {
            final TestCase scenario = event.getTestCase();
            final String feature = scenario.getUri().toString().replaceFirst(".*/features/", "")
                    .replaceFirst("\\.feature$", "");
            final String status = event.getResult().getStatus().name().toLowerCase();
            final Throwable error = event.getResult().getError();
            final String why = error == null ? status : String.valueOf(error.getMessage());
            final String outcome = status.equals("passed") || status.equals("skipped") ? status : "failed";
            out.println(String.join("\t", feature, scenario.getName(), outcome, why.replaceAll("\\s+", " ").trim()));
        }
    }
}
