// Runs the traversals of ../python/traversals.json as scripts with the official Go client (in GraphBinary), some of
// them as bytecode, and transactions with conflicts. Usage: go run . URL TRAVERSALS. The exit code is 0 only if nothing
// failed. Results and recorded answers are both converted to text, in the order of this file; ../python/canonical.py
// describes the forms.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"sort"
	"strings"

	gremlin "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

type testCase struct {
	Name     string
	Source   string
	Gremlin  []string
	Ordered  bool
	Expected []any
}

// The only graph that is written; it is emptied before each traversal over it.
const writableSource = "ggraph"

var passed, failed int

func check(title string, err error) {
	if err == nil {
		passed++
		return
	}
	failed++
	fmt.Printf("%s  FAILED  %.400s\n", title, strings.ReplaceAll(err.Error(), "\n", " "))
}

func main() {
	url := os.Args[1]
	bytes, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	var document struct{ Traversals []testCase }
	if err := json.Unmarshal(bytes, &document); err != nil {
		panic(err)
	}
	clients := map[string]*gremlin.Client{}
	submit := func(source, text string) ([]string, error) {
		if clients[source] == nil {
			client, err := gremlin.NewClient(url, func(settings *gremlin.ClientSettings) {
				settings.TraversalSource = source
				settings.LogVerbosity = gremlin.Off
			})
			if err != nil {
				return nil, err
			}
			clients[source] = client
		}
		set, err := clients[source].Submit(text)
		if err != nil {
			return nil, err
		}
		results, err := set.All()
		if err != nil {
			return nil, err
		}
		forms := []string{}
		for _, result := range results {
			forms = append(forms, canonical(result.GetInterface()))
		}
		return forms, nil
	}
	for _, one := range document.Traversals {
		check("graphbinary, script  "+one.Name, run(one, submit))
	}
	check("graphbinary, bytecode  steps and predicates", bytecode(url))
	check("graphbinary, bytecode  transactions", transactions(url))
	check("graphbinary, bytecode  conflicts", conflicts(url))
	for _, client := range clients {
		client.Close()
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func run(one testCase, submit func(source, text string) ([]string, error)) error {
	if one.Source == writableSource {
		if _, err := submit(one.Source, "g.V().drop()"); err != nil {
			return err
		}
	}
	var got []string
	for _, statement := range one.Gremlin {
		var err error
		if got, err = submit(one.Source, statement); err != nil {
			return err
		}
	}
	expected := forms(one.Expected, recorded)
	if !one.Ordered {
		sort.Strings(got)
		sort.Strings(expected)
	}
	if list(got) != list(expected) {
		return fmt.Errorf("got %s, expected %s", list(got), list(expected))
	}
	return nil
}

func source(url, name string) (*gremlin.GraphTraversalSource, *gremlin.DriverRemoteConnection, error) {
	remote, err := gremlin.NewDriverRemoteConnection(url, func(settings *gremlin.DriverRemoteConnectionSettings) {
		settings.TraversalSource = name
		settings.LogVerbosity = gremlin.Off
	})
	if err != nil {
		return nil, nil, err
	}
	return gremlin.Traversal_().With(remote), remote, nil
}

// The writable graph, emptied.
func emptied(url string) (*gremlin.GraphTraversalSource, *gremlin.DriverRemoteConnection, error) {
	g, remote, err := source(url, writableSource)
	if err != nil {
		return nil, nil, err
	}
	if err := <-g.V().Drop().Iterate(); err != nil {
		remote.Close()
		return nil, nil, err
	}
	return g, remote, nil
}

func bytecode(url string) error {
	g, remote, err := source(url, "gmodern")
	if err != nil {
		return err
	}
	defer remote.Close()
	results, err := g.V().Has("age", gremlin.P.Between(28, 33)).Where(gremlin.T__.Out("created")).
		Order().By("name").Values("name").ToList()
	if err != nil {
		return err
	}
	got := []string{}
	for _, result := range results {
		got = append(got, canonical(result.GetInterface()))
	}
	if list(got) != "[josh marko]" {
		return fmt.Errorf("got %s", list(got))
	}
	return nil
}

// One transaction that is rolled back and one that commits.
func transactions(url string) error {
	g, remote, err := emptied(url)
	if err != nil {
		return err
	}
	defer remote.Close()
	for _, commits := range []bool{false, true} {
		tx := g.Tx()
		gtx, err := tx.Begin()
		if err != nil {
			return err
		}
		if err := <-gtx.AddV("p").Iterate(); err != nil {
			return err
		}
		end := tx.Rollback
		if commits {
			end = tx.Commit
		}
		if err := end(); err != nil {
			return err
		}
	}
	count, err := g.V().Count().Next()
	if err != nil {
		return err
	}
	if canonical(count.GetInterface()) != number(1) {
		return fmt.Errorf("after a rollback and a commit there are %s vertices", canonical(count.GetInterface()))
	}
	return nil
}

// The second writer learns of the conflict at once and can retry in another transaction. A refused commit leaves
// nothing.
func conflicts(url string) error {
	g, remote, err := emptied(url)
	if err != nil {
		return err
	}
	defer remote.Close()
	if err := <-g.AddV("account").Property("balance", 10).Iterate(); err != nil {
		return err
	}
	set := func(g *gremlin.GraphTraversalSource, balance int) error {
		return <-g.V().Property("balance", balance).Iterate()
	}
	first, second, again, refused := g.Tx(), g.Tx(), g.Tx(), g.Tx()
	g1, err1 := first.Begin()
	g2, err2 := second.Begin()
	if err := errors.Join(err1, err2, set(g1, 11), isConflict(set(g2, 12)), second.Rollback(), first.Commit()); err != nil {
		return err
	}
	g3, err3 := again.Begin()
	if err := errors.Join(err3, set(g3, 12), again.Commit()); err != nil {
		return err
	}
	g4, err := refused.Begin()
	if err != nil {
		return err
	}
	balance, err := g4.V().Values("balance").Next()
	if err != nil {
		return err
	}
	if canonical(balance.GetInterface()) != number(12) {
		return fmt.Errorf("the balance is %s", canonical(balance.GetInterface()))
	}
	added := <-g4.AddV("note").Iterate()
	if err := errors.Join(added, set(g, 13), isConflict(refused.Commit())); err != nil {
		return err
	}
	labels, err := g.V().Label().ToList()
	if err != nil {
		return err
	}
	if len(labels) != 1 {
		return fmt.Errorf("a refused transaction leaves %v", labels)
	}
	return nil
}

// Returns nil if the error is a conflict. The client keeps eight bits of the code, so 596 becomes 84. It puts the
// attributes of the status into the text, and with them the name of the error.
func isConflict(err error) error {
	if err == nil {
		return errors.New("no conflict is reported")
	}
	if !strings.Contains(err.Error(), "mangrove.Conflict") || !strings.Contains(err.Error(), "again") {
		return fmt.Errorf("instead of a conflict: %w", err)
	}
	return nil
}

func forms[T any](items []T, form func(T) string) []string {
	texts := []string{}
	for _, item := range items {
		texts = append(texts, form(item))
	}
	return texts
}

func list(items []string) string {
	return "[" + strings.Join(items, " ") + "]"
}

func sorted(items []string) string {
	sort.Strings(items)
	return list(items)
}

func number(n float64) string {
	return fmt.Sprintf("%.10g", n)
}

// The text of a result.
func canonical(result any) string {
	switch r := result.(type) {
	case int, int8, int16, int32, int64, uint8, float32, float64:
		var n float64
		fmt.Sscan(fmt.Sprint(r), &n)
		return number(n)
	case *big.Int:
		return r.String()
	case *gremlin.Vertex:
		return "v[" + canonical(r.Id) + " " + r.Label + " " + properties(r.Properties) + "]"
	case *gremlin.Edge:
		return "e[" + canonical(r.Id) + " " + r.Label + " " + canonical(r.OutV.Id) + "->" + canonical(r.InV.Id) + " " +
			properties(r.Properties) + "]"
	case *gremlin.VertexProperty:
		// The client reads the key as the label.
		return "vp[" + r.Label + " " + canonical(r.Value) + " " + properties(r.Properties) + "]"
	case *gremlin.Property:
		return "p[" + r.Key + " " + canonical(r.Value) + "]"
	case *gremlin.Path:
		labels := forms(r.Labels, func(set gremlin.Set) string { return sorted(forms(set.ToSlice(), canonical)) })
		return "path[" + list(forms(r.Objects, canonical)) + " " + list(labels) + "]"
	case gremlin.Set:
		return "set" + sorted(forms(r.ToSlice(), canonical))
	case []any:
		return list(forms(r, canonical))
	case map[any]any:
		entries := []string{}
		for key, value := range r {
			entries = append(entries, canonical(key)+"="+canonical(value))
		}
		return "map" + sorted(entries)
	case nil:
		return "null"
	default:
		return fmt.Sprint(r)
	}
}

func properties(found any) string {
	byKey := map[string][]string{}
	items, _ := found.([]any)
	for _, item := range items {
		switch p := item.(type) {
		case *gremlin.VertexProperty:
			byKey[p.Label] = append(byKey[p.Label], canonical(p.Value))
		case *gremlin.Property:
			byKey[p.Key] = append(byKey[p.Key], canonical(p.Value))
		}
	}
	entries := []string{}
	for key, values := range byKey {
		entries = append(entries, key+"="+sorted(values))
	}
	return sorted(entries)
}

// The text of a recorded form, in the format of canonical.
func recorded(form any) string {
	switch f := form.(type) {
	case float64:
		return number(f)
	case []any:
		return list(forms(f, recorded))
	case map[string]any:
		return recordedObject(f)
	case nil:
		return "null"
	default:
		return fmt.Sprint(f)
	}
}

func recordedObject(f map[string]any) string {
	props := func() string {
		entries := []string{}
		for _, entry := range f["properties"].(map[string]any)["map"].([]any) {
			pair := entry.([]any)
			entries = append(entries, pair[0].(string)+"="+sorted(forms(pair[1].([]any), recorded)))
		}
		return sorted(entries)
	}
	switch {
	case f["T"] != nil:
		return fmt.Sprint(f["T"])
	case f["Direction"] != nil:
		return fmt.Sprint(f["Direction"])
	case f["set"] != nil:
		return "set" + sorted(forms(f["set"].([]any), recorded))
	case f["map"] != nil:
		entries := []string{}
		for _, entry := range f["map"].([]any) {
			pair := entry.([]any)
			entries = append(entries, recorded(pair[0])+"="+recorded(pair[1]))
		}
		return "map" + sorted(entries)
	case f["vertex"] != nil:
		return "v[" + recorded(f["vertex"]) + " " + f["label"].(string) + " " + props() + "]"
	case f["edge"] != nil:
		return "e[" + recorded(f["edge"]) + " " + f["label"].(string) + " " + recorded(f["out"]) + "->" +
			recorded(f["in"]) + " " + props() + "]"
	case f["vertexProperty"] != nil:
		return "vp[" + f["vertexProperty"].(string) + " " + recorded(f["value"]) + " " + props() + "]"
	case f["property"] != nil:
		return "p[" + f["property"].(string) + " " + recorded(f["value"]) + "]"
	default:
		labels := forms(f["labels"].([]any), func(set any) string { return sorted(forms(set.([]any), recorded)) })
		return "path[" + list(forms(f["path"].([]any), recorded)) + " " + list(labels) + "]"
	}
}
