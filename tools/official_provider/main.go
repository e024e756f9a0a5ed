// AWS's own provider for the resource types that corral declares: HashiCorp's terraform-provider-aws, served to Pulumi's
// engine by Pulumi's bridge, as in the provider that Pulumi distributes. It is not that provider: it has only the types
// of tokens.json, and none of Pulumi's patches to HashiCorp's code. `make official-provider` builds it.
package main

import (
	"context"
	"encoding/json"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
)

// Set by the build: the version of the SDK that programs use, since the engine accepts no older provider.
var version = "0.0.0"

func main() {
	info := describe()
	schema, err := json.Marshal(map[string]string{"name": info.Name, "version": version})
	if err != nil {
		panic(err)
	}
	tfbridge.MainWithMuxer(context.Background(), info.Name, *info, schema)
}
