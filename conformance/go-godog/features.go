// Package features is where run.sh tests another package: the Go client's own runner of TinkerPop's feature files. The
// import keeps that package and what it needs in go.mod.
package features

import _ "github.com/apache/tinkerpop/gremlin-go/v3/driver/cucumber"
