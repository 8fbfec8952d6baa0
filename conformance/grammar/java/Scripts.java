import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.Vocabulary;
import org.antlr.v4.runtime.atn.ATN;
import org.antlr.v4.runtime.atn.ATNState;
import org.antlr.v4.runtime.atn.RuleStopState;
import org.antlr.v4.runtime.atn.RuleTransition;
import org.antlr.v4.runtime.atn.Transition;
import org.antlr.v4.runtime.misc.IntervalSet;
import org.apache.tinkerpop.gremlin.language.grammar.GremlinParser;

/**
 * Generates scripts from the grammar's own automaton: a random walk from the start of a rule to its end. The walk prefers
 * longer paths, and takes the shortest path once the script is long enough. Also makes mutations: one to three tokens removed,
 * doubled, exchanged or inserted, or a character removed.
 */
final class Scripts {
    private static final ATN AUTOMATON = new GremlinParser(null).getATN();
    private static final Vocabulary WORDS = GremlinParser.VOCABULARY;
    private static final int NEVER = 1 << 20;
    private static final String[] STRINGS = {"'a'", "\"name\"", "'it\\'s'", "\"\\u00e9\\n\"", "'\u20ac'", "\"\\\\\"", "'a b'"};
    private static final String[] INTEGERS = {"0", "1", "-5", "+7", "12L", "3b", "4s", "99i", "123456789012n", "077", "0x1F", "1_000"};
    private static final String[] FLOATS = {"0.5", "1.5f", "-2.25d", "1e3", "1.5E-2m", ".5", "10f", "1d", "7m"};
    private static final String[] NAMES = {"x", "abc", "v1", "$p", "_y", "\u00fcber"};

    private final Random random;
    /** The least number of tokens from a state to the end of its rule. */
    private final int[] least = new int[AUTOMATON.states.size()];
    private List<String> tokens;
    private int budget;

    Scripts(final Random random) {
        this.random = random;
        Arrays.fill(least, NEVER);
        boolean changed = true;
        while (changed) {
            changed = false;
            for (final ATNState state : AUTOMATON.states) {
                if (state == null) continue;
                int best = state instanceof RuleStopState ? 0 : NEVER;
                for (final Transition way : state.getTransitions()) best = Math.min(best, price(way));
                if (best < least[state.stateNumber]) {
                    least[state.stateNumber] = best;
                    changed = true;
                }
            }
        }
    }

    private int price(final Transition way) {
        if (way instanceof RuleTransition) {
            return Math.min(NEVER, least[way.target.stateNumber] + least[((RuleTransition) way).followState.stateNumber]);
        }
        return Math.min(NEVER, least[way.target.stateNumber] + (way.isEpsilon() ? 0 : 1));
    }

    /** The tokens of a new script. */
    List<String> generated() {
        tokens = new ArrayList<>();
        budget = 1 + random.nextInt(60);
        if (random.nextBoolean()) {
            walk(AUTOMATON.ruleToStartState[GremlinParser.RULE_query]);
        } else {
            // Otherwise most scripts would end soon after their source.
            tokens.addAll(Arrays.asList("g", ".", "V", "(", ")", "."));
            walk(AUTOMATON.ruleToStartState[GremlinParser.RULE_chainedTraversal]);
        }
        return tokens;
    }

    private void walk(final ATNState start) {
        for (ATNState state = start; !(state instanceof RuleStopState); ) {
            final Transition way = way(state);
            if (way instanceof RuleTransition) {
                walk(way.target);
                state = ((RuleTransition) way).followState;
            } else {
                if (!way.isEpsilon()) token(way.label());
                state = way.target;
            }
        }
    }

    private Transition way(final ATNState state) {
        final Transition[] ways = state.getTransitions();
        // Takes the longer of two paths, so that a script continues, but none that is longer than the remaining length.
        final Transition one = ways[random.nextInt(ways.length)];
        final Transition other = ways[random.nextInt(ways.length)];
        final Transition any = price(one) > price(other) ? one : other;
        if (tokens.size() + price(any) <= budget) return any;
        Transition best = any;
        for (final Transition way : ways) if (price(way) < price(best)) best = way;
        return best;
    }

    private void token(final IntervalSet kinds) {
        final int kind = kinds.get(random.nextInt(kinds.size()));
        if (kind != Token.EOF) tokens.add(text(kind));
    }

    private String text(final int kind) {
        final String literal = WORDS.getLiteralName(kind);
        if (literal != null) return literal.substring(1, literal.length() - 1);
        switch (WORDS.getSymbolicName(kind)) {
            case "IntegerLiteral": return one(INTEGERS);
            case "FloatingPointLiteral": return one(FLOATS);
            case "SignedInfLiteral": return one("+Infinity", "-Infinity", "Infinity");
            case "NonEmptyStringLiteral": return one(STRINGS);
            case "EmptyStringLiteral": return one("''", "\"\"");
            default: return one(NAMES);
        }
    }

    private String one(final String... texts) {
        return texts[random.nextInt(texts.length)];
    }

    /** The script of these tokens, with white space where it is needed and at some other places. */
    String spelled(final List<String> words) {
        final StringBuilder script = new StringBuilder();
        for (final String word : words) {
            if (script.length() > 0 && (joins(script.charAt(script.length() - 1), word.charAt(0)) || random.nextInt(12) == 0)) {
                script.append(one(" ", " ", " ", "\n", "\t", "  // so\n"));
            }
            script.append(word);
        }
        return script.toString();
    }

    /** Returns true if two tokens with these characters at their ends would become one. */
    private static boolean joins(final char before, final char after) {
        final boolean word = Character.isJavaIdentifierPart(before);
        return word && Character.isJavaIdentifierPart(after) || Character.isDigit(before) && after == '.'
                || before == '.' && (after == '.' || Character.isDigit(after)) || before == '/' && after == '/';
    }

    /** A mutation of the script of these tokens; by chance it may still be valid. */
    String mutated(final List<String> words) {
        final List<String> changed = new ArrayList<>(words);
        for (int faults = 1 + random.nextInt(3); faults > 0 && !changed.isEmpty(); faults--) {
            final int at = random.nextInt(changed.size());
            switch (random.nextInt(6)) {
                case 0: changed.remove(at); break;
                case 1: changed.add(at, changed.get(at)); break;
                case 2: changed.add(at, changed.remove(random.nextInt(changed.size()))); break;
                case 3: changed.set(at, text(1 + random.nextInt(WORDS.getMaxTokenType()))); break;
                case 4: changed.add(at, text(1 + random.nextInt(WORDS.getMaxTokenType()))); break;
                default:
                    final String word = changed.get(at);
                    final int letter = random.nextInt(word.length());
                    changed.set(at, word.substring(0, letter) + word.substring(letter + 1));
                    if (changed.get(at).isEmpty()) changed.remove(at);
            }
        }
        return spelled(changed);
    }
}
