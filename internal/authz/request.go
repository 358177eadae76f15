package authz

import (
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// clientMetadata is the gRPC metadata in which Envoy can be told to send its own idea of the client's address. Clients
// cannot touch it.
const clientMetadata = "x-ratelimitd-client"

// requestOf takes from a decoded check what the rules may know. Anything may be missing: an L4 check has no HTTP part, and
// what could not be decoded has nothing at all.
func requestOf(check *authv3.CheckRequest) rules.Request {
	attributes := check.GetAttributes()
	request := rules.Request{
		Peer:       parsePeer(attributes.GetSource().GetAddress().GetSocketAddress().GetAddress()),
		Principal:  attributes.GetSource().GetPrincipal(),
		Extensions: attributes.GetContextExtensions(),
		Metadata:   filterMetadata{attributes.GetMetadataContext()},
	}
	if http := attributes.GetRequest().GetHttp(); http != nil {
		request.HTTP = true
		request.Method, request.Host, request.Path = http.GetMethod(), http.GetHost(), http.GetPath()
		request.Headers = headerLines(http)
	}
	return request
}

// filterMetadata reads what other filters wrote: of all of it rules want a value or two.
type filterMetadata struct{ *corev3.Metadata }

// Value returns the text, number or boolean at a place as text.
func (m filterMetadata) Value(at rules.MetadataPath) (text string, ok bool) {
	fields := m.GetFilterMetadata()[at.Namespace]
	var value *structpb.Value
	for name := range strings.SplitSeq(at.Path, ".") {
		value = fields.GetFields()[name]
		fields = value.GetStructValue()
	}
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return kind.StringValue, true
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(kind.NumberValue, 'f', -1, 64), true
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(kind.BoolValue), true
	}
	return "", false
}

// headerLines reads the header lines in either of the two forms in which Envoy sends them: with encode_raw_headers a list
// of lines as they came, otherwise a map in which repeated headers are joined.
func headerLines(http *authv3.AttributeContext_HttpRequest) []rules.Header {
	raw := http.GetHeaderMap().GetHeaders()
	lines := make([]rules.Header, 0, len(raw)+len(http.GetHeaders()))
	for _, h := range raw {
		value := h.GetValue()
		if len(h.GetRawValue()) > 0 {
			value = string(h.GetRawValue())
		}
		lines = append(lines, rules.Header{Name: strings.ToLower(h.GetKey()), Value: value})
	}
	if len(raw) > 0 {
		return lines
	}
	for name, value := range http.GetHeaders() {
		lines = append(lines, rules.Header{Name: strings.ToLower(name), Value: value})
	}
	return lines
}

// parsePeer reads the address at the other end of the connection; it is the zero Addr for a Unix socket.
func parsePeer(address string) netip.Addr {
	if address == "" { // saves making the error
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Addr{}
	}
	return addr
}
