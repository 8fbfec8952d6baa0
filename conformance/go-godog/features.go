// Package features only serves run.sh, which compiles the tests of another package from here: the Go client's own
// runner of TinkerPop's feature files. The import keeps that package and its dependencies in go.mod.
package features

import _ "github.com/apache/tinkerpop/gremlin-go/v3/driver/cucumber"
