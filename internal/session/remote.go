package session

import (
	"context"
	"fmt"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/metric"
)

// remoteEndTime is how long the end of a run waits for a store to take what is left.
const remoteEndTime = 10 * time.Second

// startRemote begins to write samples to another store where the user named one. A store that is down is no reason not to run.
func (c *carrier) startRemote() (*metric.Remote, error) {
	o := c.Order.RemoteWrite
	if o.URL == "" {
		return nil, nil
	}
	r, err := metric.StartRemote(o)
	if err != nil {
		return nil, err
	}
	c.record.say(interval.EventLog, "", "samples are written to the store at "+o.Host()+" too")
	return r, nil
}

// endRemote sends what is left and says what the other store lacks.
func (c *carrier) endRemote(ctx context.Context) (caveat string) {
	if c.remote == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remoteEndTime)
	defer cancel()
	sent, dropped, why := c.remote.Close(ctx)
	c.remote = nil
	if dropped == 0 {
		return ""
	}
	return fmt.Sprintf("The store at %s lacks %d of %d samples; the bundle has all of them. The newest reason: %v.",
		c.Order.RemoteWrite.Host(), dropped, sent+dropped, why)
}
