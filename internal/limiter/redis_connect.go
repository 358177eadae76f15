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
		client, err := l.server.connect(ctx)
		if err == nil {
			l.busySince.Store(idle)
		} else {
			l.busySince.Store(down)
			l.server.dismiss()
		}
		tried()
		if err == nil {
			l.serve(ctx, client)
			_ = client.Close()
			l.server.callHelp() // for the takes that wait behind the lost batch
		}
		l.server.store.servers.doubt()
		select {
		case <-ctx.Done():
		case <-pause:
		}
	}
}

// connect makes one attempt to reach the server and to load the scripts; and to write, if it is not of a cluster.
func (v *server) connect(ctx context.Context) (*redis.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, v.store.connectTimeout())
	defer cancel()
	options := v.options
	options.ReadTimeout = max(patience, v.store.timeout) // what is sent later has no other deadline
	options.WriteTimeout = options.ReadTimeout
	options.Dialer = dialOnce(redis.NewDialer(&v.options))
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
		return nil, err
	}
	v.greeted.Store(true)
	return client, nil
}

// probed is a bucket that no rule has.
var probed = Hit{Key: Key([]byte("ratelimitd probe")), Limit: Limit{Algorithm: SlidingLog, Quota: 1, Window: time.Second}}

// probe runs the script and writes: a Redis that cannot, such as a replica, is as good as away.
func (s *Redis) probe(ctx context.Context, client *redis.Client) error {
	c := s.command(driver, 0, []Hit{probed}, words{}, time.Now())
	look := redis.NewIntSliceCmd(ctx, c.words(false)...)
	_ = client.Process(ctx, look) // the command keeps the error
	if look.Err() != nil {
		return look.Err()
	}
	return client.Set(ctx, s.key(&probed), "", time.Millisecond).Err() // gone at once
}

// dialOnce makes the client's only connection: a lost one must not be replaced within the budget of a take.
func dialOnce(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	var dialled atomic.Bool
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, net.ErrClosed
		}
		return dial(ctx, network, addr)
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
