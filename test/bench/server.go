package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connections is how many lead to a server, as from the workers of an Envoy.
const connections = 2

// server is an ext_authz server and the connections to it.
type server struct {
	*process
	connections []*grpc.ClientConn
}

const checkMethod = "/envoy.service.auth.v3.Authorization/Check"

// connect opens the connections to a program that says where it listens.
func connect(p *process) (*server, error) {
	address, err := p.address()
	if err != nil {
		return nil, err
	}
	s := &server{process: p}
	for range connections {
		c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{})))
		if err != nil {
			s.disconnect()
			return nil, err
		}
		s.connections = append(s.connections, c)
	}
	return s, nil
}

func (s *server) disconnect() {
	for _, c := range s.connections {
		_ = c.Close()
	}
}

// asks returns callers who ask about requests of so many clients, each as likely as the others.
func (s *server) asks(ctx context.Context, r request, clients int) func(int) ask {
	return func(caller int) ask {
		random := rand.New(rand.NewPCG(uint64(caller), rand.Uint64()))
		one := s.asker(ctx, caller, r)
		return func() (int, int, error) { return one(random.IntN(clients)) }
	}
}

// asker returns a function that asks about a request of the n-th client.
func (s *server) asker(ctx context.Context, caller int, r request) func(n int) (decisions, refused int, err error) {
	connection, own := s.connections[caller%len(s.connections)], r.clone()
	var reply []byte
	return func(n int) (int, int, error) {
		own.from(n)
		if err := connection.Invoke(ctx, checkMethod, own.bytes, &reply); err != nil {
			return 0, 0, err
		}
		if isRefusal(reply) {
			return 1, 1, nil
		}
		return 1, 0, nil
	}
}

// isRefusal reports whether an answer of one of our servers refuses: the first field is the status then, and not empty.
func isRefusal(response []byte) bool {
	return len(response) > 1 && response[0] == 1<<3|2 && response[1] > 0
}

// askAll asks about one request of each client.
func (s *server) askAll(ctx context.Context, r request, clients int) error {
	const callers = 4 * inFlight
	errs := make([]error, callers)
	var running sync.WaitGroup
	for caller := range callers {
		one := s.asker(ctx, caller, r)
		running.Go(func() {
			for n := caller; n < clients && errs[caller] == nil; n += callers {
				_, _, errs[caller] = one(n)
			}
		})
	}
	running.Wait()
	return cmp.Or(errs...)
}
