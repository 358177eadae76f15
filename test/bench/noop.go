package main

import (
	"context"
	"fmt"
	"net"
	"slices"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
)

// The servers that everything is compared with answer every check with OK.
const (
	std  = "std"  // as it is usually written with grpc-go
	bare = "bare" // what is left of it without any decoding
)

// serveNoop serves on a free port of the loopback address, which it prints, until it is killed.
func serveNoop(kind string) error {
	var options []grpc.ServerOption
	switch kind {
	case std:
	case bare:
		options = append(options, grpc.NumStreamWorkers(8), grpc.ForceServerCodecV2(deafCodec{}))
	default:
		return fmt.Errorf("-noop: %q, wanted %s or %s", kind, std, bare)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := grpc.NewServer(options...)
	authv3.RegisterAuthorizationServer(server, noop{})
	return server.Serve(l)
}

type noop struct {
	authv3.UnimplementedAuthorizationServer
}

func (noop) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return &authv3.CheckResponse{
		Status:       &statuspb.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
	}, nil
}

// deafCodec reads nothing, and always says OK.
type deafCodec struct{}

var okResponse = mem.SliceBuffer{3<<3 | 2, 0} // field 3, ok_response: an empty message

func (deafCodec) Marshal(any) (mem.BufferSlice, error) { return mem.BufferSlice{okResponse}, nil }
func (deafCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
func (deafCodec) Name() string                         { return "proto" }

// bytesCodec sends and receives bytes that are encoded already.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	into := v.(*[]byte)
	*into = slices.Grow((*into)[:0], data.Len())[:data.Len()]
	data.CopyTo(*into)
	return nil
}

func (bytesCodec) Name() string { return "proto" }
