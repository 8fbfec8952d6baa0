// The floor of the Go client: the time to send g.inject(1) and read the answer.
// Usage: go run ./floor URL SECONDS
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"time"

	gremlin "github.com/apache/tinkerpop/gremlin-go/v3/driver"
)

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	client, err := gremlin.NewClient(os.Args[1], func(settings *gremlin.ClientSettings) {
		settings.TraversalSource = "g"
		settings.LogVerbosity = gremlin.Off
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	ask(client, seconds/5)
	times := ask(client, seconds)
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/apache/tinkerpop/gremlin-go/v3" {
				version = module.Version
			}
		}
	}
	fmt.Printf("gremlin-go %s\tGraphBinary\t%d\t%d\t%.0f\n", version, times[len(times)/2].Microseconds(),
		times[len(times)*99/100].Microseconds(), float64(len(times))/seconds)
}

func ask(client *gremlin.Client, seconds float64) []time.Duration {
	times := []time.Duration{}
	for end := time.Now().Add(time.Duration(seconds * float64(time.Second))); time.Now().Before(end); {
		begin := time.Now()
		results, err := client.Submit("g.inject(1)")
		if err != nil {
			panic(err)
		}
		all, err := results.All()
		if err != nil || len(all) != 1 {
			panic(fmt.Sprint("the answer is wrong: ", all, err))
		}
		times = append(times, time.Since(begin))
	}
	return times
}
