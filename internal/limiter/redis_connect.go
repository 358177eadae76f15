package limiter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

const (
	// minConnectTimeout is the least that bounds one attempt to connect. A handshake is several round trips, which must not
	// be held to the budget of a take; and Redis is to be found again within a second.
	minConnectTimeout = 500 * time.Millisecond
	// reconnectPause lies between the beginnings of two attempts.
	reconnectPause = 100 * time.Millisecond
)

// connectTimeout bounds one attempt to connect.
func (s *Redis) connectTimeout() time.Duration { return max(minConnectTimeout, 2*s.timeout) }

// The client would print a line for each connection that it does not get, through a logger that the whole process shares.
func init() { logging.Disable() }

// run keeps the lane connected until ctx ends. It calls tried when the first attempt is over. Attempts begin a pause apart
// at least, also where connections are made and lost at once.
func (l *lane) run(ctx context.Context, tried func()) {
	defer l.server.dismiss()
	defer l.busySince.Store(down)
	for ctx.Err() == nil {
		pause := time.After(reconnectPause)
		client, conn, err := l.server.connect(ctx)
		if err == nil {
			l.busySince.Store(time.Now().UnixNano())
		} else {
			l.busySince.Store(down)
			l.server.dismiss()
		}
		tried()
		if err == nil {
			l.serve(ctx, conn)
			_ = client.Close()
			l.slow.Store(true)
			l.server.callHelp() // for the takes that wait behind the lost batch
		}
		l.server.store.servers.doubt()
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
}

// serve carries batches over the connection until that is no longer good or ctx ends, and closes it.
func (l *lane) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	// The end of ctx ends a wait for a reply too. The client would wait for that wait.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l.link, l.lost = link{conn: conn}, nil
	l.slow.Store(l.roundTrip > quick)
	if l.first {
		l.keep(ctx)
	} else {
		l.help(ctx)
	}
}

// connect makes one attempt to reach the server and to load the scripts; and to write, if it is not of a cluster. The connection
// is that of the client, which does not use it any more.
func (v *server) connect(ctx context.Context) (*redis.Client, net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, v.store.connectTimeout())
	defer cancel()
	options := v.options
	var conn net.Conn
	options.Dialer = dialOnce(redis.NewDialer(&v.options), &conn)
	client := redis.NewClient(&options)
	err := client.ScriptLoad(ctx, driver.text).Err()
	if err == nil && v.store.origin.mode == ModeCluster {
		err = client.ScriptLoad(ctx, giveBack.text).Err()
	} else if err == nil {
		err = v.store.probe(ctx, client)
	}
	if err != nil {
		_ = client.Close()
		err = v.about(fmt.Errorf("connect: %w", err))
		v.store.trouble.Store(&err)
		return nil, nil, err
	}
	v.greeted.Store(true)
	return client, conn, nil
}

// probed is a bucket that no rule has.
var probed = Hit{Key: Key([]byte("ratelimitd probe")), Limit: Limit{Algorithm: SlidingLog, Quota: 1, Window: time.Second}}

// probe runs the script and writes: a Redis that cannot, such as a replica, is as good as away.
func (s *Redis) probe(ctx context.Context, client *redis.Client) error {
	request := appendRequest(nil, []Hit{probed}, time.Now(), 0)
	if err := client.EvalSha(ctx, driver.sha, []string{s.key(&probed)}, request).Err(); err != nil {
		return err
	}
	return client.Set(ctx, s.key(&probed), "", time.Millisecond).Err() // gone at once
}

// dialOnce makes the client's only connection, and shows it: a lost one must not be replaced by another that the lane does not
// know.
func dialOnce(dial func(ctx context.Context, network, addr string) (net.Conn, error), made *net.Conn) func(context.Context, string, string) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		if dialled.Swap(true) {
			return nil, net.ErrClosed
		}
		*made, err = dial(ctx, network, addr)
		return *made, err
	}
}

// lostReplies are the beginnings of error replies after which a new connection may be better: the address may lead to
// another server by now, or the password be another.
var lostReplies = []string{"READONLY", "MASTERDOWN", "LOADING", "NOAUTH", "WRONGPASS"}

// keepsConnection reports whether the connection on which a command ended so is still good.
func keepsConnection(err error) bool {
	if err == nil {
		return true
	}
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	return !slices.ContainsFunc(lostReplies, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}
