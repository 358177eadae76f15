package authz

import (
	"context"
	"sync"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// call is one check under way: what came, and what goes back. gRPC's codec fills in the one and sends the other.
type call struct {
	message mem.Buffer // gRPC's own, which holds data
	data    []byte     // the encoded CheckRequest
	request rules.Request
	empty   bool // nothing is known of the request
	applied rules.Applied
	answer  *[]byte // the encoded CheckResponse

	lines [32]rules.Header // where request.Headers has its place
}

// calls has those that are answered, to be used again. Nothing of a request may be kept beyond its answer: its texts are views of
// data.
var calls = sync.Pool{New: func() any { return new(call) }}

// release gives the check back to gRPC, and hands the call's other memory, but for that of the answer, to the next one.
func (c *call) release() {
	c.message.Free()
	c.message, c.data = nil, nil
	c.request, c.empty, c.answer = rules.Request{}, false, nil
	calls.Put(c)
}

// answers lends the memory of answers, which gRPC gives back when they are sent.
var answers answerPool

type answerPool struct{ pool sync.Pool }

// answerSize is enough for most answers. gRPC gives back nothing that is smaller than a kilobyte.
const answerSize = 2 << 10

// mostKept bounds the memory that an answer leaves for the next one.
const mostKept = 64 << 10

// Get implements mem.BufferPool. What it returns is empty, and grows.
func (p *answerPool) Get(int) *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	b := make([]byte, 0, answerSize)
	return &b
}

// Put implements mem.BufferPool.
func (p *answerPool) Put(b *[]byte) {
	if cap(*b) <= mostKept {
		p.pool.Put(b)
	}
}

// read takes from the bytes what the rules may know, for which it reads no more of them than it must. What is unusual, down
// to bytes that are no CheckRequest, is decoded in full.
func (c *call) read(ctx context.Context, reads *rules.Reads) {
	if !c.readUsual(reads) {
		check := decodeCheck(c.data)
		c.empty = check.GetAttributes() == nil
		c.request = requestOf(check) // its metadata and texts are its own
	}
	if !reads.EnvoyClient {
		return
	}
	// Envoy sends one value; of several nobody knows which is meant.
	if values := metadata.ValueFromIncomingContext(ctx, clientMetadata); len(values) == 1 {
		c.request.EnvoyClient = values[0]
	}
}

// answerer is what gRPC wants a service to be.
type answerer interface {
	answer(ctx context.Context, c *call)
}

// serviceDesc is the Authorization service, but for how its messages are decoded.
var serviceDesc = grpc.ServiceDesc{
	ServiceName: authv3.Authorization_ServiceDesc.ServiceName,
	HandlerType: (*answerer)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Check", Handler: handleCheck}},
	Metadata:    authv3.Authorization_ServiceDesc.Metadata,
}

// handleCheck answers one check. It leaves interceptors out: the server has none.
func handleCheck(server any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	c := calls.Get().(*call)
	if err := decode(c); err != nil {
		return nil, err
	}
	c.answer = answers.Get(answerSize)
	server.(answerer).answer(ctx, c)
	return c, nil // the codec releases it
}
