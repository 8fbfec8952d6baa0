import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.antlr.v4.runtime.BaseErrorListener;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.RecognitionException;
import org.antlr.v4.runtime.Recognizer;
import org.antlr.v4.runtime.Token;
import org.apache.tinkerpop.gremlin.language.grammar.GremlinLexer;
import org.apache.tinkerpop.gremlin.language.grammar.GremlinParser;

/**
 * Parses scripts with TinkerPop's own parser of gremlin-lang, and runs none of them. The scripts are those of the input, one
 * a line, those that are generated from the grammar by a seed, and mutations of all of these. For each script it prints a
 * verdict, a tab, and the script. The verdict is `+`, or line, column and message of the first fault, or `?` if the parser
 * does not end in time. In a line, a line end is `\n`, and backslashes are doubled.
 *
 * Usage: java -cp CLASSPATH Grammar SEED GENERATED MUTATIONS <SCRIPTS
 *
 * GENERATED is the number of generated scripts, MUTATIONS the number of mutations of each script.
 */
public final class Grammar {
    /** The first fault of a script. */
    private static final class Fault extends RuntimeException {
        Fault(final int line, final int column, final String what) {
            super(line + " " + (column + 1) + " " + what.replaceAll("\\s+", " "), null, false, false);
        }
    }

    /** On some faulty scripts the parser tries alternatives for minutes. Such a script is given up. */
    private static final class TooLong extends RuntimeException {
        TooLong() {
            super(null, null, false, false);
        }
    }

    /** A stream of tokens that ends when the time of a script is over. */
    private static final class Tokens extends CommonTokenStream {
        private static final long ENOUGH_NANOS = 3_000_000_000L;
        private final long end = System.nanoTime() + ENOUGH_NANOS;

        Tokens(final GremlinLexer lexer) {
            super(lexer);
        }

        @Override
        public int LA(final int i) {
            if (System.nanoTime() > end) throw new TooLong();
            return super.LA(i);
        }
    }

    private static final BaseErrorListener STRICT = new BaseErrorListener() {
        @Override
        public void syntaxError(final Recognizer<?, ?> recognizer, final Object symbol, final int line, final int column,
                                final String message, final RecognitionException error) {
            throw new Fault(line, column, message);
        }
    };

    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(final String[] args) throws IOException {
        final Random random = new Random(Long.parseLong(args[0]));
        final int mutations = Integer.parseInt(args[2]);
        final Scripts scripts = new Scripts(random);
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            final String script = unescaped(line);
            tell(script);
            // Only scripts that the lexer accepts are mutated.
            try {
                final List<String> tokens = lexer(script).getAllTokens().stream()
                        .filter(token -> token.getChannel() == Token.DEFAULT_CHANNEL).map(Token::getText)
                        .collect(Collectors.toCollection(ArrayList::new));
                for (int i = 0; i < mutations; i++) tell(scripts.mutated(tokens));
            } catch (Fault fault) {
                // `tell` has printed the fault.
            }
        }
        for (int n = Integer.parseInt(args[1]); n > 0; n--) {
            final List<String> tokens = scripts.generated();
            tell(scripts.spelled(tokens));
            for (int i = 0; i < mutations; i++) tell(scripts.mutated(tokens));
        }
        OUT.flush();
    }

    private static void tell(final String script) {
        OUT.print(answer(script) + "\t" + script.replace("\\", "\\\\").replace("\n", "\\n") + "\n");
    }

    private static String answer(final String script) {
        try {
            final GremlinParser parser = new GremlinParser(new Tokens(lexer(script)));
            parser.removeErrorListeners();
            parser.addErrorListener(STRICT);
            parser.queryList();
            return "+";
        } catch (Fault fault) {
            return fault.getMessage();
        } catch (TooLong e) {
            return "?";
        }
    }

    private static GremlinLexer lexer(final String script) {
        final GremlinLexer lexer = new GremlinLexer(CharStreams.fromString(script));
        lexer.removeErrorListeners();
        lexer.addErrorListener(STRICT);
        return lexer;
    }

    private static String unescaped(final String line) {
        final StringBuilder script = new StringBuilder();
        for (int i = 0; i < line.length(); i++) {
            final char c = line.charAt(i);
            if (c != '\\' || i + 1 == line.length()) script.append(c);
            else script.append(line.charAt(++i) == 'n' ? '\n' : line.charAt(i));
        }
        return script.toString();
    }
}
