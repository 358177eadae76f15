package authz

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
)

// metadata is what Envoy's access log can show of the outcome, as %DYNAMIC_METADATA(envoy.filters.http.ext_authz:rule)%.
// What has nothing to say is left out.
func (o *outcome) metadata() *structpb.Struct {
	fields := make(map[string]*structpb.Value, 5)
	decision := "deny"
	if o.verdict.Allowed {
		decision = "allow"
	}
	fields["decision"] = structpb.NewStringValue(decision)
	if o.verdict.Reason != limiter.ReasonNone {
		fields["reason"] = structpb.NewStringValue(string(o.verdict.Reason))
	}
	if o.rule != nil {
		fields["rule"] = structpb.NewStringValue(o.rule.Name)
	}
	if o.verdict.Speaker >= 0 {
		fields["remaining"] = structpb.NewNumberValue(float64(remaining(o.decisions[o.verdict.Speaker])))
	}
	if seconds, ok := o.retryAfter(); ok && !o.verdict.Allowed {
		fields["retry_after_s"] = structpb.NewNumberValue(float64(seconds))
	}
	if len(o.shadowDenied) > 0 {
		names := make([]*structpb.Value, len(o.shadowDenied))
		for i, rule := range o.shadowDenied {
			names[i] = structpb.NewStringValue(rule.Name)
		}
		fields["shadow_denied"] = structpb.NewListValue(&structpb.ListValue{Values: names})
	}
	if o.degraded {
		fields["degraded"] = structpb.NewBoolValue(true)
	}
	return &structpb.Struct{Fields: fields}
}
