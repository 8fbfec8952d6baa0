// TinkerPop's Go runner of the feature files, unmodified: the package with the steps is a part of the client's module.
module mangrove/features

go 1.25

require github.com/apache/tinkerpop/gremlin-go/v3 v3.8.1

require (
	github.com/cucumber/gherkin/go/v26 v26.2.0 // indirect
	github.com/cucumber/godog v0.15.0 // indirect
	github.com/cucumber/messages/go/v21 v21.0.1 // indirect
	github.com/gofrs/uuid v4.3.1+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-memdb v1.3.4 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/nicksnyder/go-i18n/v2 v2.5.0 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/text v0.21.0 // indirect
)
