package main

import (
	"errors"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

func TestARefusalIsToldByItsFirstBytes(t *testing.T) {
	for _, tt := range []struct {
		code int32
		want bool
	}{{0, false}, {8, true}} {
		response, err := proto.Marshal(&authv3.CheckResponse{
			Status:       &statuspb.Status{Code: tt.code},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := isRefusal(response); got != tt.want {
			t.Errorf("code %d: refusal %v", tt.code, got)
		}
	}
	if isRefusal(okResponse) || isRefusal(nil) {
		t.Error("an answer without a status is a refusal")
	}
}

func TestARatioIsThatOfTheLeastFigures(t *testing.T) {
	a, b := figure{"a", serverCPU}, figure{"b", serverCPU}
	f := figures{a: {30, 20, 25}, b: {50, 80, 40}}
	if got, want := f.ratio(a, b), (result{0.5, 0.6, 0.25, 0.625}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOnlyARowAboveItsMustIsMissed(t *testing.T) {
	at := func(value float64) row { return row{measured: result{value: value}, must: 0.6, aim: 0.45} }
	for _, tt := range []struct {
		row     row
		reached string
	}{
		{at(0.45), "aim"}, {at(0.46), "must"}, {at(0.6), "must"}, {at(0.61), "**missed**"},
		{row{measured: result{value: 1}, must: 1}, "aim"},
	} {
		cells := tt.row.cells()
		if got := cells[len(cells)-1]; got != tt.reached {
			t.Errorf("%+v: %s, want %s", tt.row, got, tt.reached)
		}
		if got := len(missed([]row{tt.row})) > 0; got != (tt.reached == "**missed**") {
			t.Errorf("%+v: missed %v", tt.row, got)
		}
	}
}

func TestAllocationsAreThoseOfTheCostliestCheckAndOfATake(t *testing.T) {
	const output = `
BenchmarkCheck/allowed-2         	   20000	      9702 ns/op	     128 B/op	       3 allocs/op
BenchmarkCheck/refused-2         	   20000	      3377 ns/op	     128 B/op	      12 allocs/op
PASS
BenchmarkMemoryTakeOfAHotKey 	   20000	       472.4 ns/op	      32 B/op	       1 allocs/op
`
	if got, err := sumAllocations(output); got != 13 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := sumAllocations(output[:strings.Index(output, "PASS")]); err == nil {
		t.Error("a benchmark that did not run is no error")
	}
}

func TestTheDaemonsRulesAreDistinct(t *testing.T) {
	text := manyRules(10_000)
	if !strings.Contains(text, "rule-09999") || strings.Count(text, "paths: [/rule-00005/things]") != 1 {
		t.Error("not 10 000 rules, of which one matches")
	}
}

func TestTheSortedSetLetsItsQuotaPass(t *testing.T) {
	server := harness.Redis(t)
	client := server.Client()
	r := &redisServer{client: client}
	if err := sortedSet.Load(t.Context(), client).Err(); err != nil {
		t.Fatal(err)
	}
	ask := r.sortedSetAsks(t.Context(), "t", standstill())(0)
	decisions, refused := 0, 0
	for range 2 * buckets * quota / setPipeline {
		n, r, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		decisions, refused = decisions+n, refused+r
	}
	if passed := decisions - refused; passed != buckets*quota {
		t.Errorf("%d of %d passed, want %d", passed, decisions, buckets*quota)
	}
}

func TestABusyBucketStaysAsFullAsItShouldBe(t *testing.T) {
	p := newPace()
	before := p.now()
	for range 10_000 {
		p.adapt(quota - fullness - 1)
	}
	shorter := p.now()
	if shorter >= before {
		t.Errorf("too full: the window goes from %s to %s", before, shorter)
	}
	for range 10_000 {
		p.adapt(quota - fullness)
	}
	if p.now() <= shorter {
		t.Errorf("not full enough: the window goes from %s to %s", shorter, p.now())
	}
}

func TestAMeasurementOfSomethingElseIsAnError(t *testing.T) {
	failed := errors.New("no answer")
	for _, tt := range []struct {
		name    string
		refuses bool
		got     measurement
		err     error
		fails   bool
	}{
		{"allowed as it should be", false, measurement{decisions: 1, refused: 0.05}, nil, false},
		{"refused as it should be", true, measurement{decisions: 1, refused: 1}, nil, false},
		{"refused", false, measurement{decisions: 1, refused: 0.3}, nil, true},
		{"allowed", true, measurement{decisions: 1, refused: 0.9}, nil, true},
		{"nothing decided", false, measurement{}, nil, true},
		{"an ask that failed", false, measurement{decisions: 1}, failed, true},
	} {
		c := new(crowd)
		if tt.err != nil {
			c.err.Store(&tt.err)
		}
		s := subject{refuses: tt.refuses}
		if err := s.check(tt.got, c); (err != nil) != tt.fails || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

func TestAProgramThatEndsAtOnceTellsWhatItSaid(t *testing.T) {
	p, err := start(t.Context(), "the shell", "sh", "-c", "echo no such luck; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if _, err := p.address(); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("error %v", err)
	}
}
