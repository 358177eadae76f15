package authz

import "github.com/ratelimitd/ratelimitd/internal/limiter"

// The numbers of the fields of a protobuf Struct, by their messages.
const (
	structFields = 1

	valueNumber, valueText, valueBool, valueList = 2, 3, 4, 6

	listValues = 1
)

// appendMetadata appends what Envoy's access log can show of the outcome, as %DYNAMIC_METADATA(envoy.filters.http.ext_authz:rule)%,
// a Struct. What has nothing to say is left out.
func (o *outcome) appendMetadata(b []byte) []byte {
	decision := "deny"
	if o.verdict.Allowed {
		decision = "allow"
	}
	b = appendTextField(b, "decision", decision)
	if o.verdict.Reason != limiter.ReasonNone {
		b = appendTextField(b, "reason", string(o.verdict.Reason))
	}
	if o.rule != nil {
		b = appendTextField(b, "rule", o.rule.Name)
	}
	if o.verdict.Speaker >= 0 {
		b = appendNumberField(b, "remaining", float64(remaining(o.decisions[o.verdict.Speaker])))
	}
	if seconds, ok := o.retryAfter(); ok && !o.verdict.Allowed {
		b = appendNumberField(b, "retry_after_s", float64(seconds))
	}
	if len(o.shadowDenied) > 0 {
		b = o.appendShadowDenied(b)
	}
	if o.degraded {
		b, field := openField(b, "degraded")
		return field.shut(appendNumber(b, valueBool, 1))
	}
	return b
}

func (o *outcome) appendShadowDenied(b []byte) []byte {
	b, field := openField(b, "shadow_denied")
	b = open(b, valueList)
	list := len(b)
	for _, rule := range o.shadowDenied {
		b = open(b, listValues)
		begin := len(b)
		b = shut(appendText(b, valueText, rule.Name), begin)
	}
	return field.shut(shut(b, list))
}

func appendTextField(b []byte, name, value string) []byte {
	b, field := openField(b, name)
	return field.shut(appendText(b, valueText, value))
}

func appendNumberField(b []byte, name string, value float64) []byte {
	b, field := openField(b, name)
	return field.shut(appendDouble(b, valueNumber, value))
}

// openStruct is where a field of a Struct, an entry of a map, and the Value in it begin.
type openStruct struct{ entry, value int }

func openField(b []byte, name string) ([]byte, openStruct) {
	b = open(b, structFields)
	entry := len(b)
	b = open(appendText(b, entryKey, name), entryValue)
	return b, openStruct{entry, len(b)}
}

func (s openStruct) shut(b []byte) []byte { return shut(shut(b, s.value), s.entry) }
