package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/ratelimitd/ratelimitd/test/harness"
)

// pacedRate is how many requests a second the latencies are measured at: well below what an Envoy's worker can do.
const pacedRate = 1500

// likes is the rule that all requests through an Envoy are held to.
const likes = `
- {name: likes, match: {paths: [/api/videos/*/likes]}, key: [client_ip, path], limit: 100/1m}
`

// envoyLab is what Envoys are measured with.
type envoyLab struct {
	*lab
	envoy           string // path of the binary
	upstream        string // address
	memory, inRedis *limiterDaemon
}

// limiterDaemon is a daemon that Envoys can ask in two ways.
type limiterDaemon struct {
	*process
	tcp, unix string
}

func newEnvoyLab(ctx context.Context, daemon string, e extent) (*envoyLab, error) {
	envoy, err := harness.Find("envoy")
	if err != nil {
		return nil, err
	}
	v := &envoyLab{envoy: envoy}
	v.lab, err = newLab(ctx, daemon, e, (*lab).addRedis, func(l *lab) (err error) {
		v.lab = l
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		l.stops = append(l.stops, func() { _ = listener.Close() })
		go serveUpstream(listener)
		v.upstream = listener.Addr().String()
		var errMemory, errRedis error
		v.memory, errMemory = v.startDaemon("memory", "")
		v.inRedis, errRedis = v.startDaemon("redis", l.redis.url)
		return cmp.Or(errMemory, errRedis)
	})
	return v, err
}

// startDaemon starts a daemon that keeps its buckets in memory, or in the Redis of that URL.
func (v *envoyLab) startDaemon(name, redisURL string) (*limiterDaemon, error) {
	d := &limiterDaemon{unix: filepath.Join(v.dir, name+".sock")}
	text := listening(fmt.Sprintf("[127.0.0.1:0, %q]", "unix://"+d.unix), redisURL, likes)
	var err error
	if d.process, err = v.lab.startDaemon(name, text); err != nil {
		return nil, err
	}
	d.tcp, err = d.address()
	return d, err
}

// add starts an Envoy and adds it to what is measured: at full speed, and at a steady rate for the latencies. asks is the
// daemon that it asks; nil if it asks none.
func (v *envoyLab) add(name string, b *bootstrap, asks *limiterDaemon) error {
	text, err := b.text()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(v.dir, "envoy")
	if err != nil {
		return err
	}
	e, err := harness.StartEnvoy(dir, text, v.envoy)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	v.stops = append(v.stops, e.Stop)
	opened, err := v.openBrowsers(e.Addr, asks != nil)
	if err != nil {
		return err
	}
	newAsk := func(caller int) ask { return opened[caller].ask }
	costs := []cost{{envoyCPU, func() (float64, error) { return cpuOf("envoy", e.PID) }}}
	if asks != nil {
		costs = append(costs, cost{serverCPU, asks.cpu})
	}
	v.subjects = append(v.subjects, &subject{name: name, callers: browsers, newAsk: newAsk, costs: costs})
	v.subjects = append(v.subjects, &subject{
		name: paced(name), callers: browsers, newAsk: newAsk, every: time.Second * browsers / pacedRate,
	})
	return nil
}

// paced is the name of a subject whose callers ask at a steady rate.
func paced(name string) string { return name + ", paced" }

func (v *envoyLab) openBrowsers(addr string, limited bool) ([]*browser, error) {
	var opened []*browser
	for n := range browsers {
		b, err := openBrowser(n, addr, limited)
		if err != nil {
			return nil, err
		}
		v.stops = append(v.stops, func() { _ = b.conn.Close() })
		opened = append(opened, b)
	}
	return opened, nil
}
