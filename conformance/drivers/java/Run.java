import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.RequestOptions;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.Path;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.process.traversal.util.Metrics;
import org.apache.tinkerpop.gremlin.process.traversal.util.TraversalMetrics;
import org.apache.tinkerpop.gremlin.structure.Direction;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.structure.Property;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Transaction;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.structure.VertexProperty;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.message.ResponseStatusCode;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.shaded.jackson.databind.JsonNode;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

/**
 * Runs the traversals of ../python/traversals.json as scripts with the official Java client and each of its serializers,
 * some traversals as bytecode, and transactions. Usage: java -cp CLASSPATH Run.java HOST PORT TRAVERSALS. The exit code is
 * 0 only if nothing failed. Forms are compared as text, in the order of this file; ../python/canonical.py describes them.
 */
public class Run {
    private static final String WRITABLE_SOURCE = "ggraph";
    private static final ObjectMapper JSON = new ObjectMapper();
    private static int passed;
    private static int failed;

    interface Action {
        void run() throws Exception;
    }

    static void check(final String title, final Action action) {
        try {
            action.run();
            passed++;
        } catch (Throwable e) {
            failed++;
            System.out.println(title + "  FAILED  " + String.valueOf(e).lines().findFirst().orElse(""));
        }
    }

    static void equal(final Object expected, final Object got) {
        if (!expected.equals(got)) throw new AssertionError("got " + got + ", expected " + expected);
    }

    /** The serializers of both versions: those of GraphSON have other names in 3.7. */
    static Map<String, MessageSerializer<?>> serializers() throws Exception {
        final Map<String, MessageSerializer<?>> found = new TreeMap<>();
        found.put("graphbinary", new GraphBinaryMessageSerializerV1());
        final String prefix = "org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializer";
        for (final String version : Arrays.asList("2", "3")) {
            for (final String name : Arrays.asList(prefix + "V" + version, prefix + "V" + version + "d0")) {
                try {
                    found.putIfAbsent("graphson" + version,
                            (MessageSerializer<?>) Class.forName(name).getDeclaredConstructor().newInstance());
                } catch (ClassNotFoundException e) {
                    // The name in the other version.
                }
            }
        }
        return found;
    }

    public static void main(final String[] args) throws Exception {
        final JsonNode cases = JSON.readTree(new File(args[2])).get("traversals");
        for (final Map.Entry<String, MessageSerializer<?>> entry : serializers().entrySet()) {
            final String name = entry.getKey();
            final boolean loose = name.equals("graphson2");
            final Cluster cluster = Cluster.build(args[0]).port(Integer.parseInt(args[1])).serializer(entry.getValue())
                    .create();
            for (final JsonNode one : cases) {
                check(name + ", script  " + one.get("name").asText(), () -> {
                    final boolean ordered = one.get("ordered").asBoolean();
                    equal(answer(expected(one.get("expected"), loose), ordered), answer(run(cluster, one, loose), ordered));
                });
            }
            traversals(cluster, name);
            cluster.close();
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }

    static List<String> run(final Cluster cluster, final JsonNode one, final boolean loose) throws Exception {
        final String source = one.get("source").asText();
        if (source.equals(WRITABLE_SOURCE)) submit(cluster, source, "g.V().drop()");
        List<Result> results = Collections.emptyList();
        for (final JsonNode statement : one.get("gremlin")) results = submit(cluster, source, statement.asText());
        final List<String> forms = new ArrayList<>();
        for (final Result result : results) forms.add(canonical(result.getObject(), loose));
        return forms;
    }

    static List<Result> submit(final Cluster cluster, final String source, final String text) throws Exception {
        final Client client = cluster.connect().alias(source);
        final RequestOptions options = RequestOptions.build().language("gremlin-lang").create();
        return client.submit(text, options).all().get();
    }

    /** Checks that need bytecode: enums, predicates, elements as arguments, batches, transactions. */
    static void traversals(final Cluster cluster, final String name) {
        final GraphTraversalSource g = AnonymousTraversalSource.traversal()
                .withRemote(DriverRemoteConnection.using(cluster, "gmodern"));
        final GraphTraversalSource own = AnonymousTraversalSource.traversal()
                .withRemote(DriverRemoteConnection.using(cluster, WRITABLE_SOURCE));
        check(name + ", bytecode  steps and predicates", () -> equal(Arrays.asList("josh", "marko"),
                g.V().has("age", P.between(28, 33)).where(__.out("created")).order().by("name").values("name").toList()));
        check(name + ", bytecode  within, and, or, not", () -> equal(3L,
                g.V().has("name", P.within("lop", "ripple", "peter").and(P.neq("x")).or(P.eq("y"))).count().next()));
        check(name + ", bytecode  an element as argument", () -> {
            final Vertex marko = g.V().has("name", "marko").next();
            equal(2L, g.V(marko).out("knows").count().next());
        });
        check(name + ", bytecode  results beyond a batch", () -> equal(1_000,
                g.inject(1).repeat(__.union(__.identity(), __.identity())).times(10).limit(1_000).toList().size()));
        check(name + ", bytecode  iterate()", () -> {
            own.V().drop().iterate();
            own.addV("p").property("id", UUID.randomUUID()).property("n", 1L).iterate();
            equal(1L, own.V().count().next());
        });
        check(name + ", bytecode  transactions", () -> {
            own.V().drop().iterate();
            for (final boolean commits : new boolean[] {false, true}) {
                final Transaction tx = own.tx();
                final GraphTraversalSource gtx = tx.begin();
                gtx.addV("p").iterate();
                if (commits) tx.commit(); else tx.rollback();
            }
            equal(1L, own.V().count().next());
        });
        check(name + ", bytecode  conflicts", () -> conflicts(own));
        check(name + ", bytecode  profile()", () -> profile(
                g.V().hasLabel("person").where(__.out("created").has("lang", "java")).profile().next()));
        check(name + ", bytecode  an error", () -> {
            try {
                g.call("no.such.service").iterate();
            } catch (Exception e) {
                if (String.valueOf(e.getMessage()).contains("no.such.service")) return;
                throw e;
            }
            throw new AssertionError("no error");
        });
    }

    /** The second writer learns of the conflict at once and can retry in another transaction. A refused commit leaves nothing. */
    static void conflicts(final GraphTraversalSource g) throws Exception {
        g.V().drop().iterate();
        g.addV("account").property("balance", 10).iterate();
        final Transaction first = g.tx(), second = g.tx();
        final GraphTraversalSource g1 = first.begin(), g2 = second.begin();
        g1.V().property("balance", 11).iterate();
        conflict(() -> g2.V().property("balance", 12).iterate());
        second.rollback();
        first.commit();
        final Transaction again = g.tx();
        again.<GraphTraversalSource>begin().V().property("balance", 12).iterate();
        again.commit();
        equal(12, g.V().values("balance").next());

        final Transaction refused = g.tx();
        final GraphTraversalSource gtx = refused.begin();
        equal(12, gtx.V().values("balance").next());
        gtx.addV("note").iterate();
        g.V().property("balance", 13).iterate();
        conflict(refused::commit);
        equal(Arrays.asList("account"), g.V().label().toList());
    }

    /** The metrics of a traversal whose results are marko, josh and peter, by the client's own types. */
    static void profile(final TraversalMetrics profile) {
        if (profile.getDuration(TimeUnit.NANOSECONDS) <= 0) throw new AssertionError("no duration: " + profile);
        final List<Metrics> operators = new ArrayList<>(profile.getMetrics());
        final Metrics run = operators.remove(operators.size() - 1), results = operators.get(operators.size() - 1);
        equal(3L, results.getCount(TraversalMetrics.TRAVERSER_COUNT_ID));
        equal(3L, results.getCount(TraversalMetrics.ELEMENT_COUNT_ID));
        equal(1L, ((Number) run.getAnnotation("scopeGroups")).longValue());
        double shares = 0;
        boolean nested = false;
        for (final Metrics operator : operators) {
            shares += ((Number) operator.getAnnotation(TraversalMetrics.PERCENT_DURATION_KEY)).doubleValue();
            for (final Metrics inside : operator.getNested()) nested |= inside.getName().contains("created");
        }
        equal(100L, Math.round(shares));
        if (!nested) throw new AssertionError("nothing is nested: " + profile);
        // The client prints a table of its own.
        if (!profile.toString().contains("with label person")) throw new AssertionError(profile.toString());
    }

    /** The action must end with a conflict: the cause has the code, and its message has the way out. */
    static void conflict(final Action action) throws Exception {
        try {
            action.run();
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (!(cause instanceof ResponseException)) continue;
                equal(ResponseStatusCode.SERVER_ERROR_TEMPORARY, ((ResponseException) cause).getResponseStatusCode());
                if (cause.getMessage().contains("again")) return;
            }
            throw error;
        }
        throw new AssertionError("no conflict is reported");
    }

    static String answer(final List<String> forms, final boolean ordered) {
        final List<String> all = new ArrayList<>(forms);
        if (!ordered) Collections.sort(all);
        return all.toString();
    }

    /** The text of a result. `loose`: without what GraphSON 2 cannot express: sets are lists, and keys of maps are text. */
    static String canonical(final Object result, final boolean loose) {
        if (result instanceof Number) return number(((Number) result).doubleValue());
        if (result instanceof T) return loose ? ((T) result).name() : "T." + ((T) result).name();
        if (result instanceof Direction) return loose ? ((Direction) result).name() : "Direction." + ((Direction) result).name();
        if (result instanceof Vertex) {
            final Vertex v = (Vertex) result;
            return "v[" + canonical(v.id(), loose) + " " + v.label() + " " + properties(v, loose) + "]";
        }
        if (result instanceof Edge) {
            final Edge e = (Edge) result;
            return "e[" + canonical(e.id(), loose) + " " + e.label() + " " + canonical(e.outVertex().id(), loose) + "->"
                    + canonical(e.inVertex().id(), loose) + " " + properties(e, loose) + "]";
        }
        if (result instanceof VertexProperty) {
            final VertexProperty<?> p = (VertexProperty<?>) result;
            return "vp[" + p.key() + " " + canonical(p.value(), loose) + " " + properties(p, loose) + "]";
        }
        if (result instanceof Property) {
            return "p[" + ((Property<?>) result).key() + " " + canonical(((Property<?>) result).value(), loose) + "]";
        }
        if (result instanceof Path) {
            final Path path = (Path) result;
            final List<String> labels = new ArrayList<>();
            path.labels().forEach(of -> labels.add(of.stream().sorted().collect(Collectors.toList()).toString()));
            return "path[" + list(path.objects(), loose) + " " + labels + "]";
        }
        if (result instanceof Map.Entry) {
            return canonical(Collections.singletonMap(((Map.Entry<?, ?>) result).getKey(), ((Map.Entry<?, ?>) result).getValue()), loose);
        }
        if (result instanceof Map) {
            final Map<String, String> sorted = new TreeMap<>();
            ((Map<?, ?>) result).forEach((k, v) -> sorted.put(canonical(k, loose), canonical(v, loose)));
            return "map" + sorted;
        }
        if (result instanceof Set) return set(((Set<?>) result).stream().map(o -> canonical(o, loose)).collect(Collectors.toList()), loose);
        if (result instanceof Collection) return list((Collection<?>) result, loose);
        return String.valueOf(result);
    }

    static String number(final double number) {
        return String.format("%.10g", number);
    }

    static String list(final Collection<?> items, final boolean loose) {
        return items.stream().map(o -> canonical(o, loose)).collect(Collectors.toList()).toString();
    }

    static String set(final List<String> items, final boolean loose) {
        return (loose ? "" : "set") + items.stream().sorted().collect(Collectors.toList());
    }

    static String properties(final Element element, final boolean loose) {
        final Map<String, List<String>> byKey = new TreeMap<>();
        element.properties().forEachRemaining(p -> byKey.computeIfAbsent(p.key(), k -> new ArrayList<>()).add(canonical(p.value(), loose)));
        byKey.values().forEach(Collections::sort);
        return byKey.toString();
    }

    static List<String> expected(final JsonNode forms, final boolean loose) {
        final List<String> texts = new ArrayList<>();
        forms.forEach(form -> texts.add(expectedForm(form, loose)));
        return texts;
    }

    /** The text of a recorded form, in the format of {@link #canonical}. */
    static String expectedForm(final JsonNode form, final boolean loose) {
        if (form.isNumber()) return number(form.asDouble());
        if (form.isArray()) return expected(form, loose).toString();
        if (!form.isObject()) return form.isNull() ? "null" : form.asText();
        if (form.has("T")) return loose ? form.get("T").asText() : "T." + form.get("T").asText();
        if (form.has("Direction")) return loose ? form.get("Direction").asText() : "Direction." + form.get("Direction").asText();
        if (form.has("set")) return set(expected(form.get("set"), loose), loose);
        if (form.has("map")) {
            final Map<String, String> sorted = new TreeMap<>();
            form.get("map").forEach(e -> sorted.put(expectedForm(e.get(0), loose), expectedForm(e.get(1), loose)));
            return "map" + sorted;
        }
        final String properties = form.has("properties") ? expectedProperties(form.get("properties"), loose) : "";
        if (form.has("vertex")) {
            return "v[" + expectedForm(form.get("vertex"), loose) + " " + form.get("label").asText() + " " + properties + "]";
        }
        if (form.has("edge")) {
            return "e[" + expectedForm(form.get("edge"), loose) + " " + form.get("label").asText() + " "
                    + expectedForm(form.get("out"), loose) + "->" + expectedForm(form.get("in"), loose) + " " + properties + "]";
        }
        if (form.has("vertexProperty")) {
            return "vp[" + form.get("vertexProperty").asText() + " " + expectedForm(form.get("value"), loose) + " " + properties + "]";
        }
        if (form.has("property")) {
            return "p[" + form.get("property").asText() + " " + expectedForm(form.get("value"), loose) + "]";
        }
        final List<String> labels = new ArrayList<>();
        form.get("labels").forEach(of -> labels.add(expected(of, loose).stream().sorted().collect(Collectors.toList()).toString()));
        return "path[" + expected(form.get("path"), loose) + " " + labels + "]";
    }

    static String expectedProperties(final JsonNode properties, final boolean loose) {
        final Map<String, List<String>> byKey = new TreeMap<>();
        properties.get("map").forEach(e -> byKey.put(e.get(0).asText(), expected(e.get(1), loose)));
        byKey.values().forEach(Collections::sort);
        return byKey.toString();
    }
}
