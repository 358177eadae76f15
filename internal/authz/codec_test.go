package authz

import (
	"context"
	"net"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// badBytes marks, in a message that is well formed, the text that corrupt makes invalid.
const badBytes = "<bad>"

// corrupt encodes a message and puts bytes that are no UTF-8 where the text badBytes is.
func corrupt(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+len(badBytes) <= len(data); i++ {
		if string(data[i:i+len(badBytes)]) == badBytes {
			copy(data[i:], "\xff\xc3(\xe2\x82")
		}
	}
	return data
}

const repaired = "!!(!!"

// Client bytes that Envoy hands over uncleaned: the server name of TLS, and metadata made of headers or tokens.
func TestBadUTF8IsReplacedWhereverItIs(t *testing.T) {
	list, err := structpb.NewValue([]any{"a" + badBytes, map[string]any{badBytes: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	request := get("/", "x", "毛")
	request.Attributes.TlsSession = &authv3.AttributeContext_TLSSession{Sni: "a" + badBytes + ".example"}
	request.Attributes.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"lab": {Fields: map[string]*structpb.Value{"list": list}},
	}}
	got := decodeCheck(corrupt(t, request))
	want := proto.Clone(request).(*authv3.CheckRequest)
	want.Attributes.TlsSession.Sni = "a" + repaired + ".example"
	list, err = structpb.NewValue([]any{"a" + repaired, map[string]any{repaired: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	want.Attributes.MetadataContext.FilterMetadata["lab"].Fields["list"] = list
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// nested is a request with lists in lists that deep, and bad bytes at the bottom.
func nested(t testing.TB, depth int) []byte {
	value := structpb.NewStringValue(badBytes)
	for range depth {
		value = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{value}})
	}
	request := get("/deep")
	request.Attributes.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"n": {Fields: map[string]*structpb.Value{"v": value}}}}
	return corrupt(t, request)
}

func TestDeeplyNestedBadUTF8IsReplaced(t *testing.T) {
	got := decodeCheck(nested(t, 1000))
	if path := got.GetAttributes().GetRequest().GetHttp().GetPath(); path != "/deep" {
		t.Errorf("path %q", path)
	}
}

func TestWhatIsNoProtobufIsAnEmptyRequest(t *testing.T) {
	valid, err := proto.Marshal(get("/"))
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{{0xff}, []byte("GET / HTTP/1.1\r\n\r\n"), {0x0a, 0x05, 0x01}, valid[:len(valid)-1], nested(t, 6000)} {
		if got := decodeCheck(data); !proto.Equal(got, &authv3.CheckRequest{}) {
			t.Errorf("%.20q: %.200s", data, got)
		}
	}
}

func TestOtherMessagesAreDecodedAsUsual(t *testing.T) {
	bad := mem.BufferSlice{mem.SliceBuffer("\x0a\x01\xff")}
	if err := Codec().Unmarshal(bad, &healthpb.HealthCheckRequest{}); err == nil {
		t.Error("no error")
	}
	if name := Codec().Name(); name != "proto" {
		t.Errorf("name %s", name)
	}
}

// rawCodec sends bytes as they are.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// serve runs the fixture behind a real gRPC server until the test ends.
func serve(t *testing.T, f *fixture) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.ForceServerCodecV2(Codec()))
	f.Register(server)
	healthpb.RegisterHealthServer(server, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// Without the codec gRPC answers INTERNAL, and with failure_mode_allow anybody passes.
func TestBadBytesDoNotBypassTheLimits(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies, rules.Rule{Name: "a", Match: paths(t, "/a"), Limit: logLimit(2, time.Minute), Cost: 1})
	conn := serve(t, f)
	sni, meta := get("/a"), get("/a")
	sni.Attributes.TlsSession = &authv3.AttributeContext_TLSSession{Sni: badBytes}
	meta.Attributes.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"n": {Fields: map[string]*structpb.Value{"v": structpb.NewStringValue(badBytes)}}}}
	for i, data := range [][]byte{corrupt(t, sni), corrupt(t, meta), corrupt(t, sni), corrupt(t, meta)} {
		got := &authv3.CheckResponse{}
		err := conn.Invoke(t.Context(), authv3.Authorization_Check_FullMethodName, data, got, grpc.ForceCodecV2(rawCodec{Codec()}))
		if err != nil || allowed(got) != (i < 2) {
			t.Errorf("request %d: %v, %v", i, got, err)
		}
	}
}

func TestAnUndecodableCheckIsAnsweredAndWarnedOfOnceAMinute(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies,
		rules.Rule{Name: "http", Match: paths(t, "/**"), Limit: logLimit(0, time.Minute), Cost: 1},
		rules.Rule{Name: "all", Limit: logLimit(1, time.Minute), Cost: 1})
	conn := serve(t, f)
	for i := range 3 {
		got := &authv3.CheckResponse{}
		err := conn.Invoke(t.Context(), authv3.Authorization_Check_FullMethodName, []byte("\xff\xff"), got, grpc.ForceCodecV2(rawCodec{Codec()}))
		if err != nil || allowed(got) != (i == 0) {
			t.Errorf("request %d: %v, %v", i, got, err)
		}
	}
	if f.logs.Len() != 1 {
		t.Errorf("%d log lines", f.logs.Len())
	}
}

func TestChecksEndToEnd(t *testing.T) {
	f := newFixture(t, &countingStore{}, bothFamilies, rules.Rule{Name: "a", Key: attributes(t, "client_ip"), Limit: logLimit(2, time.Minute), Cost: 1})
	conn := serve(t, f)
	client := authv3.NewAuthorizationClient(conn)
	for i, want := range []string{"1", "0", "0"} { // D14, D32
		got, err := client.Check(t.Context(), get("/"))
		if err != nil {
			t.Fatal(err)
		}
		if allowed(got) != (i < 2) || headerOf(got, "x-ratelimit-remaining") != want {
			t.Errorf("request %d: %v", i, got)
		}
	}
	// The other services of the server use the same codec.
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	err := conn.Invoke(t.Context(), healthpb.Health_Check_FullMethodName, []byte("\xff"), &healthpb.HealthCheckResponse{}, grpc.ForceCodecV2(rawCodec{Codec()}))
	if status.Code(err) != codes.Internal {
		t.Errorf("undecodable health check: %v", err)
	}
}
