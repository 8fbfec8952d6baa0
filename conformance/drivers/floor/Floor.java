import java.util.Arrays;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.util.MessageSerializer;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;

/**
 * The floor of the Java driver: the time to send g.inject(1) and read the answer.
 * Usage: java -cp CLASSPATH Floor HOST PORT SECONDS
 */
public class Floor {
    public static void main(String[] arguments) throws Exception {
        measure(arguments, "GraphBinary", new GraphBinaryMessageSerializerV1());
        measure(arguments, "GraphSON 3", new GraphSONMessageSerializerV3());
        System.exit(0);
    }

    private static void measure(String[] arguments, String form, MessageSerializer<?> serializer) throws Exception {
        double seconds = Double.parseDouble(arguments[2]);
        Cluster cluster = Cluster.build(arguments[0]).port(Integer.parseInt(arguments[1])).serializer(serializer)
                .minConnectionPoolSize(1).maxConnectionPoolSize(1).create();
        Client client = cluster.connect();
        ask(client, seconds / 2);
        long[] times = ask(client, seconds);
        cluster.close();
        Arrays.sort(times);
        String version = Client.class.getPackage().getImplementationVersion();
        System.out.printf("gremlin-driver (Java) %s\t%s\t%d\t%d\t%.0f%n", version == null ? System.getProperty("line", "") : version,
                form, times[times.length / 2] / 1000, times[times.length * 99 / 100] / 1000, times.length / seconds);
    }

    private static long[] ask(Client client, double seconds) throws Exception {
        long[] times = new long[10_000_000];
        int count = 0;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < end && count < times.length) {
            long begin = System.nanoTime();
            if (client.submit("g.inject(1)").all().get().get(0).getInt() != 1) {
                throw new IllegalStateException("the answer is wrong");
            }
            times[count++] = System.nanoTime() - begin;
        }
        return Arrays.copyOf(times, count);
    }
}
