package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The limits in units, before they are scaled, and their windows.
const (
	clientQuota, proQuota, clientWindow = 20, 30, time.Second
	groupQuota, groupWindow             = 60, 2 * time.Second
	allQuota, allWindow                 = 60, time.Second
	trialQuota, trialWindow             = 8, 700 * time.Millisecond
)

var everyone = []int{0, 1, 2, 3}

// rules is a configuration's rules, with all limits multiplied by half the factor.
func rules(factor uint32) string {
	return fmt.Sprintf(`
log: {level: warn}
on_store_error: deny
rules:
- {name: client, key: [header.x-client], limit: %d/1s, cost: {from: header.x-cost, max: 5},
   overrides: [{match: {headers: {x-plan: pro}}, limit: %d/1s}]}
- {name: group, key: [header.x-group], limit: %d/2s, algorithm: grouped_log, cost: {from: header.x-cost, max: 5}}
- {name: all, key: [], limit: %d/1s, algorithm: grouped_log, cost: {from: header.x-cost, max: 5}}
- {name: trial, key: [header.x-client], limit: %d/700ms, cost: {from: header.x-cost, max: 5}, mode: shadow}
`, clientQuota*factor/2, proQuota*factor/2, groupQuota*factor/2, allQuota*factor/2, trialQuota*factor/2)
}

// request is what a client asks. Clients 0 and 1 are of one group, 2 and 3 of another.
type request struct {
	client int
	pro    bool // asks under the override
	cost   uint32
}

func requestOf(client int) request {
	return request{client: client, pro: rand.IntN(8) == 0, cost: []uint32{1, 1, 1, 1, 2, 2, 3, 5}[rand.IntN(8)]}
}

func (q request) group() int { return q.client / 2 }

// hits is what the request asks of the enforced rules and of the shadow rule.
func (q request) hits(factor uint32) (enforced []Hit, trial Hit) {
	own := uint32(clientQuota)
	if q.pro {
		own = proQuota
	}
	hit := func(bucket string, window time.Duration, quota uint32) Hit {
		return Hit{bucket, window, quota * factor / 2, q.cost}
	}
	return []Hit{
		hit(fmt.Sprint("client/", q.client), clientWindow, own),
		hit(fmt.Sprint("group/", q.group()), groupWindow, groupQuota),
		hit("all", allWindow, allQuota),
	}, hit(fmt.Sprint("trial/", q.client), trialWindow, trialQuota)
}

// buckets names all buckets that requests ask.
func buckets() []string {
	var names []string
	for _, client := range everyone {
		enforced, trial := request{client: client}.hits(2)
		for _, h := range append(enforced, trial) {
			names = append(names, h.Bucket)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// answer is what became of a request.
type answer int

const (
	allowed     answer = iota
	refused            // by a limit
	unavailable        // by the failure policy: nobody knows what was spent
)

// decision is a request and its answer.
type decision struct {
	request
	sent, received time.Duration // since the run began
	answer
	trial bool // the shadow rule was spent for certain
}

func dial(t *testing.T, addr string) authv3.AuthorizationClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return authv3.NewAuthorizationClient(conn)
}

// ask sends a request as Envoy does. Whatever the store does, there is an answer.
func (r *run) ask(to authv3.AuthorizationClient, q request) decision {
	headers := map[string]string{
		"x-client": strconv.Itoa(q.client), "x-group": strconv.Itoa(q.group()), "x-cost": strconv.Itoa(int(q.cost)),
	}
	if q.pro {
		headers["x-plan"] = "pro"
	}
	check := &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: "203.0.113.9", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 1}},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/", Host: "a.example", Headers: headers,
		}},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d := decision{request: q, sent: r.now()}
	resp, err := to.Check(ctx, check)
	d.received = r.now()
	if err != nil {
		r.t.Errorf("a request without an answer after %v: %v", d.received-d.sent, err)
		d.answer = unavailable
		return d
	}
	told := resp.GetDynamicMetadata().GetFields()
	switch {
	case told["degraded"].GetBoolValue():
		r.t.Errorf("a request passed without a limit: %v", told)
	case told["decision"].GetStringValue() == "allow":
		d.answer = allowed
	case told["reason"].GetStringValue() == "limit":
		d.answer = refused
	case told["reason"].GetStringValue() == "store":
		d.answer = unavailable
	default:
		r.t.Errorf("an answer that is none of these: %v", told)
	}
	// Beside a refusal it is not told whether the shadow rule was asked: the store may have failed then.
	d.trial = d.answer == allowed && len(told["shadow_denied"].GetListValue().GetValues()) == 0
	return d
}
