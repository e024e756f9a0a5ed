package main

import (
	"strings"

	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
)

type fields = map[string]*tfbridge.SchemaInfo

// exceptions returns, by Terraform's name, where pulumi-aws differs from the rules of the bridge: its SDK shows it.
func exceptions() map[string]*tfbridge.ResourceInfo {
	with := func(named fields) *tfbridge.ResourceInfo { return &tfbridge.ResourceInfo{Fields: named} }
	named := func(length int) *tfbridge.SchemaInfo { return tfbridge.AutoName("name", length, "-") }
	kept := func(name string) *tfbridge.SchemaInfo { return &tfbridge.SchemaInfo{Name: name} }
	list := func(name string) *tfbridge.SchemaInfo {
		return &tfbridge.SchemaInfo{Name: name, MaxItemsOne: tfbridge.False()}
	}
	policy := func() *tfbridge.SchemaInfo { // texts that differ in white space alone are one
		return &tfbridge.SchemaInfo{Type: "string", Transform: tfbridge.TransformJSONDocument}
	}
	byPulumi := func() *tfbridge.SchemaInfo {
		return &tfbridge.SchemaInfo{Default: &tfbridge.DefaultInfo{Value: "Managed by Pulumi"}}
	}
	return map[string]*tfbridge.ResourceInfo{
		"aws_cloudwatch_log_group":    {IDFields: []string{"name"}},
		"aws_cloudwatch_metric_alarm": with(fields{"alarm_name": named(255)}),
		"aws_efs_file_system":         with(fields{"creation_token": tfbridge.AutoName("creationToken", 255, "-")}),
		"aws_efs_mount_target":        {DeleteBeforeReplace: true},
		"aws_iam_policy":              with(fields{"policy": policy()}),
		"aws_iam_role":                with(fields{"name": named(64), "assume_role_policy": policy()}),
		"aws_iam_role_policy":         with(fields{"policy": policy()}),
		"aws_kms_alias":               with(fields{"name": aliasName()}),
		"aws_route53_record": with(fields{
			"name":                       kept("name"),
			"alias":                      list("aliases"),
			"failover_routing_policy":    list("failoverRoutingPolicies"),
			"geolocation_routing_policy": list("geolocationRoutingPolicies"),
			"latency_routing_policy":     list("latencyRoutingPolicies"),
			"weighted_routing_policy":    list("weightedRoutingPolicies"),
		}),
		"aws_route53_zone": with(fields{"comment": byPulumi()}),
		"aws_s3_bucket": with(fields{
			"bucket": tfbridge.AutoNameTransform("bucket", 63, strings.ToLower),
			"policy": policy(),
		}),
		"aws_s3_bucket_policy": with(fields{"policy": policy()}),
		"aws_s3_object": {
			IDFields: []string{"bucket", "key"},
			Fields: fields{
				"key":    {Default: &tfbridge.DefaultInfo{From: tfbridge.FromName(tfbridge.AutoNameOptions{})}},
				"source": {Asset: &tfbridge.AssetTranslation{Kind: tfbridge.FileAsset}},
			},
		},
		"aws_security_group": with(fields{
			"description": byPulumi(),
			"egress":      kept("egress"),
			"ingress":     kept("ingress"),
		}),
		"aws_sns_topic":              with(fields{"name": named(80)}),
		"aws_sns_topic_subscription": with(fields{"topic_arn": kept("topic")}),
	}
}

// aliasName returns the rule of names of KMS aliases, which begin with `alias/`.
func aliasName() *tfbridge.SchemaInfo {
	return tfbridge.AutoNameWithCustomOptions("name", tfbridge.AutoNameOptions{
		Separator: "-",
		Maxlen:    238,
		Randlen:   7,
		PostTransform: func(_ *tfbridge.PulumiResource, name string) (string, error) {
			return "alias/" + strings.TrimPrefix(name, "alias/"), nil
		},
	})
}
