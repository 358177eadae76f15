package limiter

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
)

// The values of RedisOptions.Mode.
const (
	ModeSingle   = "single"   // one server
	ModeCluster  = "cluster"  // the masters of a Redis Cluster; the URL names one node or several
	ModeSentinel = "sentinel" // the server that Redis Sentinel says is the master; the URL names the sentinels
)

// origin is what a URL says about where Redis is.
type origin struct {
	mode    string
	options redis.Options // of a connection to a server that holds buckets
	addrs   []string      // of the server, of some nodes of the cluster, or of the sentinels
	// Of sentinels only: how to connect to one, and what they call the master.
	sentinel redis.Options
	master   string
}

// parseOrigin reads a URL. timeout bounds an attempt to connect.
func parseOrigin(mode, text string, timeout time.Duration) (origin, error) {
	o := origin{mode: cmp.Or(mode, ModeSingle)}
	var err error
	switch o.mode {
	case ModeSingle:
		var single *redis.Options
		if single, err = redis.ParseURL(text); err == nil {
			o.options, o.addrs = *single, []string{single.Addr}
		}
	case ModeCluster:
		var cluster *redis.ClusterOptions
		if cluster, err = redis.ParseClusterURL(text); err == nil {
			o.addrs = cluster.Addrs
			o.options = redis.Options{Username: cluster.Username, Password: cluster.Password, TLSConfig: cluster.TLSConfig}
		}
	case ModeSentinel:
		var failover *redis.FailoverOptions
		if failover, err = redis.ParseFailoverURL(text); err == nil {
			o.addrs, o.master = failover.SentinelAddrs, failover.MasterName
			o.options = redis.Options{Username: failover.Username, Password: failover.Password, DB: failover.DB,
				TLSConfig: failover.TLSConfig}
			o.sentinel = redis.Options{Username: failover.SentinelUsername, Password: failover.SentinelPassword,
				TLSConfig: failover.TLSConfig}
			if o.master == "" {
				err = errors.New("no master_name")
			}
		}
	default:
		err = fmt.Errorf("mode %q is none", o.mode)
	}
	if err != nil {
		if parse := new(url.Error); errors.As(err, &parse) {
			err = parse.Err // without the URL, which may hold a password
		}
		return origin{}, fmt.Errorf("redis url: %w", err)
	}
	bind(&o.options, timeout)
	bind(&o.sentinel, timeout)
	return o, nil
}

// bind sets what the promises about time rest on, whatever the URL says. Each client has one connection.
func bind(o *redis.Options, timeout time.Duration) {
	o.ClientName = "ratelimitd"
	o.DisableIdentity = true // it costs each new connection a round trip
	o.Protocol = 2           // integers look the same in both, and this one has no pushes between the replies
	o.MaxRetries = -1        // a take that was sent may have been spent
	o.DialerRetries = 1
	o.DialTimeout = timeout
	o.ContextTimeoutEnabled = true
	o.ReadTimeout, o.WriteTimeout = timeout, timeout // where the context has no deadline
	o.PoolSize = 1
	o.ConnMaxIdleTime = -1 // an idle connection stays: a new one would be made within a take's budget
	o.PipelinePoolSize = -1
}
