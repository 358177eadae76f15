package authz

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/internal/limiter"
	"github.com/ratelimitd/ratelimitd/internal/metrics"
	"github.com/ratelimitd/ratelimitd/internal/rules"
)

// countingStore has windows that never end. It keeps what it was asked, and fails with err once that is set.
type countingStore struct {
	used  map[limiter.Key]uint32
	takes [][]limiter.Hit
	err   error
}

func (s *countingStore) Name() string { return "memory" }

func (s *countingStore) Take(_ context.Context, hits []limiter.Hit) ([]limiter.Decision, error) {
	s.takes = append(s.takes, slices.Clone(hits))
	if s.err != nil {
		return nil, s.err
	}
	if s.used == nil {
		s.used = map[limiter.Key]uint32{}
	}
	decisions, pass := make([]limiter.Decision, len(hits)), true
	for i, h := range hits {
		decisions[i] = s.look(h)
		pass = pass && (decisions[i].Allowed || h.Shadow)
	}
	for i, h := range hits {
		if decisions[i].Allowed && (pass || h.Shadow) {
			s.used[h.Key] += h.Cost
			decisions[i].Remaining -= h.Cost
			decisions[i].ResetAfter = h.Limit.Window
		}
	}
	return decisions, nil
}

func (s *countingStore) look(h limiter.Hit) limiter.Decision {
	left := h.Limit.Capacity() - s.used[h.Key]
	switch {
	case h.Limit.NeverPasses(h.Cost):
		return limiter.Decision{RetryAfter: limiter.Never}
	case max(h.Cost, 1) > left:
		return limiter.Decision{RetryAfter: h.Limit.Window}
	}
	return limiter.Decision{Allowed: true, Remaining: left}
}

// scriptedStore answers each hit by its rule's name, whatever was asked before.
type scriptedStore map[string]limiter.Decision

func (s scriptedStore) Name() string { return "memory" }

func (s scriptedStore) Take(_ context.Context, hits []limiter.Hit) ([]limiter.Decision, error) {
	decisions := make([]limiter.Decision, len(hits))
	for i, h := range hits {
		decisions[i] = s[h.Rule]
	}
	return decisions, nil
}

var bothFamilies = Answer{XRateLimit: true, RateLimit: true, Status: http.StatusTooManyRequests}

// fixture is a server with all that it writes to.
type fixture struct {
	*Server
	t       testing.TB
	metrics *prometheus.Registry
	logs    *observer.ObservedLogs
}

func newFixture(t testing.TB, store Store, answer Answer, list ...rules.Rule) *fixture {
	t.Helper()
	return newFixtureFor(t, store, answer, rules.ClientIP{}, list...)
}

func newFixtureFor(t testing.TB, store Store, answer Answer, client rules.ClientIP, list ...rules.Rule) *fixture {
	t.Helper()
	registry := prometheus.NewRegistry()
	core, logs := observer.New(zap.InfoLevel)
	m := metrics.New(registry)
	local := limiter.NewMemory(limiter.MemoryOptions{})
	server := NewServer(Options{Store: Measured(store, m), Local: local, Metrics: m, Log: zap.New(core)})
	server.Use(Snapshot{Rules: rules.NewSet(list, client), Answer: answer})
	return &fixture{server, t, registry, logs}
}

// check asks once.
func (f *fixture) check(request *authv3.CheckRequest) *authv3.CheckResponse {
	f.t.Helper()
	return f.checkIn(context.Background(), request)
}

func (f *fixture) checkIn(ctx context.Context, request *authv3.CheckRequest) *authv3.CheckResponse {
	f.t.Helper()
	data, err := proto.Marshal(request)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.checkBytes(ctx, data)
}

// checkBytes asks as gRPC does.
func (f *fixture) checkBytes(ctx context.Context, data []byte) *authv3.CheckResponse {
	f.t.Helper()
	decode := func(into any) error { return Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, into) }
	answer, err := handleCheck(f.Server, ctx, decode, nil)
	if err != nil {
		f.t.Fatalf("Check: %v", err)
	}
	message, err := Codec().Marshal(answer)
	if err != nil {
		f.t.Fatal(err)
	}
	defer message.Free()
	response := &authv3.CheckResponse{}
	if err := proto.Unmarshal(message.Materialize(), response); err != nil {
		f.t.Fatalf("answer % x: %v", message.Materialize(), err)
	}
	return response
}

// series reads one metric: labels are names and values in turn.
func (f *fixture) series(name string, labels ...string) float64 {
	f.t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	next:
		for _, m := range family.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if has[labels[i]] != labels[i+1] {
					continue next
				}
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	f.t.Fatalf("no series %s%v", name, labels)
	return 0
}

// allowed says whether Envoy lets the request pass: only the outer status decides.
func allowed(response *authv3.CheckResponse) bool { return response.GetStatus().GetCode() == 0 }

// headerOf returns the value of an answer's header; "" when it is not there.
func headerOf(response *authv3.CheckResponse, name string) string {
	list := response.GetOkResponse().GetResponseHeadersToAdd()
	if !allowed(response) {
		list = response.GetDeniedResponse().GetHeaders()
	}
	for _, h := range list {
		if h.GetHeader().GetKey() == name {
			return h.GetHeader().GetValue()
		}
	}
	return ""
}

// headerMap is all headers of an answer.
func headerMap(response *authv3.CheckResponse) map[string]string {
	all := map[string]string{}
	for _, list := range [][]*corev3.HeaderValueOption{
		response.GetOkResponse().GetResponseHeadersToAdd(), response.GetDeniedResponse().GetHeaders(),
	} {
		for _, h := range list {
			all[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
		}
	}
	return all
}

func metadataOf(response *authv3.CheckResponse) map[string]any {
	return response.GetDynamicMetadata().AsMap()
}

// get is a request as a bare Envoy sends it, from 203.0.113.9; headers are names and values in turn.
func get(path string, headers ...string) *authv3.CheckRequest {
	r := &authv3.AttributeContext_HttpRequest{
		Method: "GET", Path: path, Host: "api.example.com", Headers: map[string]string{":path": path},
	}
	for i := 0; i < len(headers); i += 2 {
		r.Headers[headers[i]] = headers[i+1]
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  from("203.0.113.9"),
		Request: &authv3.AttributeContext_Request{Http: r},
	}}
}

func from(ip string) *authv3.AttributeContext_Peer {
	return &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
		SocketAddress: &corev3.SocketAddress{Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 44172}},
	}}}
}

// raw is the same request with encode_raw_headers.
func raw(request *authv3.CheckRequest) *authv3.CheckRequest {
	request = proto.Clone(request).(*authv3.CheckRequest)
	http := request.GetAttributes().GetRequest().GetHttp()
	http.HeaderMap = &corev3.HeaderMap{}
	for name, value := range http.GetHeaders() {
		http.HeaderMap.Headers = append(http.HeaderMap.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)})
	}
	http.Headers = nil
	return request
}

func attributes(t testing.TB, texts ...string) []rules.Attribute {
	t.Helper()
	list := make([]rules.Attribute, len(texts))
	for i, text := range texts {
		a, err := rules.ParseAttribute(text)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = a
	}
	return list
}

func paths(t testing.TB, texts ...string) rules.Match {
	t.Helper()
	var m rules.Match
	for _, text := range texts {
		p, err := rules.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Paths = append(m.Paths, p)
	}
	return m
}

func logLimit(quota uint32, window time.Duration) limiter.Limit {
	return limiter.Limit{Algorithm: limiter.SlidingLog, Quota: quota, Window: window, Tick: limiter.TickFor(quota, window, 0)}
}

func bucketLimit(quota uint32, window time.Duration, burst uint32) limiter.Limit {
	return limiter.Limit{Algorithm: limiter.TokenBucket, Quota: quota, Window: window, Burst: burst, Tick: limiter.TickFor(burst, window, 0)}
}

// dayLimit is of a day of the calendar.
func dayLimit(quota uint32) limiter.Limit {
	day := limiter.Calendar{Period: limiter.Day, Zone: time.UTC}
	return limiter.Limit{Algorithm: limiter.CalendarWindow, Quota: quota, Window: day.Longest(), Calendar: day, Tick: time.Second}
}

// fromJSON reads the JSON form of a message.
func fromJSON[M proto.Message](t testing.TB, text string, m M) M {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}
