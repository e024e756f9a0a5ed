package main

import (
	"encoding/json"
	"io"
	"runtime/debug"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
)

// property is what HashiCorp's schema says of a property; what is false is left out.
type property struct {
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	Computed bool   `json:"computed,omitempty"`
	Replaces bool   `json:"replaces,omitempty"`
	Default  any    `json:"default,omitempty"`
}

type properties map[string]property

// A type of the newer generation of HashiCorp's SDK is `partial`: its schema has neither Replaces nor Default.
type kind struct {
	Partial    bool       `json:"partial,omitempty"`
	Properties properties `json:"properties"`
}

// writeSchema writes, for each type, all properties by their paths in Pulumi's names.
func writeSchema(info *tfbridge.ProviderInfo, isSDK func(string) bool, to io.Writer) error {
	found := struct {
		Upstream  string          `json:"terraform-provider-aws"`
		SDK       string          `json:"pulumi-aws"`
		Bridge    string          `json:"pulumi-terraform-bridge"`
		Resources map[string]kind `json:"resources"`
	}{Upstream: upstream, SDK: version, Bridge: bridgeVersion(), Resources: map[string]kind{}}
	for name, one := range info.Resources {
		all := properties{}
		all.add("", info.P.ResourcesMap().Get(name).Schema(), one.Fields, isSDK(name))
		found.Resources[string(one.Tok)] = kind{Partial: !isSDK(name), Properties: all}
	}
	writer := json.NewEncoder(to)
	writer.SetIndent("", " ")
	return writer.Encode(found)
}

// add adds a block's properties, and those of the blocks in it.
func (all properties) add(above string, schema shim.SchemaMap, named map[string]*tfbridge.SchemaInfo, whole bool) {
	schema.Range(func(key string, one shim.Schema) bool {
		path := above + tfbridge.TerraformToPulumiNameV2(key, schema, named)
		reported := property{
			Type:     one.Type().String(),
			Required: one.Required(),
			Optional: one.Optional(),
			Computed: one.Computed(),
		}
		if whole {
			reported.Replaces, reported.Default = one.ForceNew(), one.Default()
		}
		var below map[string]*tfbridge.SchemaInfo
		if info := named[key]; info != nil {
			if info.Default != nil && info.Default.Value != nil {
				reported.Default = info.Default.Value
			}
			if info.Elem != nil {
				below = info.Elem.Fields
			}
		}
		all[path] = reported
		if block, ok := one.Elem().(shim.Resource); ok {
			all.add(path+".", block.Schema(), below, whole)
		}
		return true
	})
}

func bridgeVersion() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, one := range build.Deps {
		if one.Path == "github.com/pulumi/pulumi-terraform-bridge/v3" {
			return one.Version
		}
	}
	return ""
}
