// AWS's own provider for the resource types that corral declares: HashiCorp's terraform-provider-aws, served to Pulumi's
// engine by Pulumi's bridge, as in the provider that Pulumi distributes. It is not that provider: it has only the types
// of tokens.json, and none of Pulumi's patches to HashiCorp's code. `make official-provider` builds it; `pulumi-resource-aws schema`
// prints what HashiCorp's code says of the types' properties.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
)

// Set by the build: the version of the SDK that programs use, since the engine accepts no older provider, and that of
// HashiCorp's provider.
var version, upstream = "0.0.0", ""

func main() {
	info, isSDK := describe()
	if len(os.Args) == 2 && os.Args[1] == "schema" {
		must(writeSchema(info, isSDK, os.Stdout))
		return
	}
	schema, err := json.Marshal(map[string]string{"name": info.Name, "version": version})
	if err != nil {
		panic(err)
	}
	tfbridge.MainWithMuxer(context.Background(), info.Name, *info, schema)
}
