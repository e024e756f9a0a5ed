package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"

	"github.com/hashicorp/terraform-provider-aws/xpprovider"
	pf "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	shim "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim"
	sdkv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/x/muxer"
	"github.com/pulumi/pulumi-terraform-bridge/v3/unstable/metadata"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

//go:embed tokens.json
var tokensFile []byte

// What the bridge dispatches by: HashiCorp's provider is two in one, by two generations of its SDK.
type dispatcher interface {
	ResolveDispatch(*tfbridge.ProviderInfo) (muxer.DispatchTable, error)
}

// describe returns what the bridge needs to serve the types of tokens.json, and whether a type, by Terraform's name, is
// of the older generation of HashiCorp's SDK. It panics on a defect of this module.
func describe() (*tfbridge.ProviderInfo, func(string) bool) {
	ctx := context.Background()
	framework, sdk, err := xpprovider.GetProvider(ctx)
	must(err)
	sdk.TerraformVersion = "1.0.0"
	both := pf.MuxShimWithDisjointgPF(ctx, sdkv2.NewProvider(sdk), framework)
	info := &tfbridge.ProviderInfo{
		Name:                    "aws",
		DisplayName:             "AWS",
		GitHubOrg:               "hashicorp",
		Version:                 version,
		P:                       both,
		Config:                  configuration(),
		Resources:               exceptions(),
		DataSources:             map[string]*tfbridge.DataSourceInfo{},
		MetadataInfo:            tfbridge.NewProviderMetadata([]byte("{}")),
		GenerateRuntimeMetadata: true,
		// As in Pulumi's provider: previews by HashiCorp's own plan, no questions to AWS while it is configured.
		EnableAccurateBridgePreview:                  true,
		EnableRawStateDelta:                          true,
		SkipValidateProviderConfigForPluginFramework: true,
	}
	isSDK := func(name string) bool {
		_, found := sdk.ResourcesMap[name]
		return found
	}
	var named struct{ Resources, Functions map[string]string }
	must(json.Unmarshal(tokensFile, &named))
	for name, token := range named.Resources {
		one := info.Resources[name]
		if one == nil {
			one = &tfbridge.ResourceInfo{}
			info.Resources[name] = one
		}
		if one.Fields == nil {
			one.Fields = map[string]*tfbridge.SchemaInfo{}
		}
		one.Tok = tokens.Type(token)
		complete(one, both.ResourcesMap().Get(name).Schema(), isSDK(name))
	}
	for name, token := range named.Functions {
		info.DataSources[name] = &tfbridge.DataSourceInfo{Tok: tokens.ModuleMember(token)}
	}
	table, err := both.(dispatcher).ResolveDispatch(info)
	must(err)
	must(metadata.Set(info.GetMetadata(), "mux", table))
	return info, isSDK
}

// complete adds what holds for all types: a name by default, all tags and the region as early as the inputs' check.
func complete(one *tfbridge.ResourceInfo, schema shim.SchemaMap, isSDK bool) {
	if name, ok := schema.GetOk("name"); ok && one.Fields["name"] == nil && (name.Optional() || name.Required()) {
		one.Fields["name"] = tfbridge.AutoName("name", 255, "-")
	}
	region, ok := schema.GetOk("region")
	hasRegion := ok && region.Optional() && region.Deprecated() == ""
	_, hasAll := schema.GetOk("tags_all")
	tags, ok := schema.GetOk("tags")
	hasTags := ok && hasAll && isSDK && (tags.Optional() || !tags.Computed())
	if hasTags {
		one.Fields["tags_all"] = &tfbridge.SchemaInfo{MarkAsComputedOnly: tfbridge.True()}
	}
	one.PreCheckCallback = func(_ context.Context, given, provider resource.PropertyMap) (resource.PropertyMap, error) {
		checked := given.Copy()
		if hasTags {
			checked["tagsAll"] = merged(provider["defaultTags"], given["tags"])
		}
		if hasRegion && given["region"].IsNull() && !provider["region"].IsNull() {
			checked["region"] = provider["region"]
		}
		return checked, nil
	}
}

// merged returns the provider's default tags with the resource's own tags; unknown if either is.
func merged(defaults, own resource.PropertyValue) resource.PropertyValue {
	if defaults.ContainsUnknowns() || own.ContainsUnknowns() {
		return resource.NewOutputProperty(resource.Output{Known: false})
	}
	all := resource.PropertyMap{}
	if defaults.IsObject() && defaults.ObjectValue()["tags"].IsObject() {
		maps.Copy(all, defaults.ObjectValue()["tags"].ObjectValue())
	}
	if own.IsObject() {
		maps.Copy(all, own.ObjectValue())
	}
	return resource.NewObjectProperty(all)
}

func configuration() map[string]*tfbridge.SchemaInfo {
	secret := func() *tfbridge.SchemaInfo { return &tfbridge.SchemaInfo{Secret: tfbridge.True()} }
	regions := &tfbridge.DefaultInfo{EnvVars: []string{"AWS_REGION", "AWS_DEFAULT_REGION"}}
	return map[string]*tfbridge.SchemaInfo{
		"region":                      {Default: regions},
		"access_key":                  secret(),
		"secret_key":                  secret(),
		"token":                       secret(),
		"skip_region_validation":      {Default: &tfbridge.DefaultInfo{Value: true}},
		"skip_credentials_validation": {Default: &tfbridge.DefaultInfo{Value: false}},
		"skip_metadata_api_check":     {Type: "boolean"},
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
