package nutanix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/nutanix/ahv"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// The lease of a cluster is a category of Prism Central: Prism accepts each key and value once, and changes it only for a
// caller that knows its current version. Its description names the lease holder. Categories that no object has do nothing.
const (
	leaseKey   = "BraggLease"
	leaseWords = "Lease of a Bragg controller: "
	// leaseMax is less than Prism accepts for a description.
	leaseMax = 500
	takesMax = 5
	wordsMax = 40 // characters of the run and the user
)

// Lock takes the lease of the cluster.
func (c *cluster) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	c.sought.Store(true)
	if _, err := c.known(ctx); err != nil {
		return nil, err
	}
	group, err := lease.Together(ctx, h, []lease.Place{leased{c.ahv, ahv.Categories{Prism: c.client}}})
	if err != nil {
		return nil, err
	}
	return group, nil
}

// leased is the lease of a cluster.
type leased struct {
	cluster    *ahv.Cluster
	categories ahv.Categories
}

func (l leased) Name() string { return l.cluster.Name }

func (l leased) Identity(context.Context) (string, error) { return l.cluster.ID, nil }

// leaseText is the description of the category that holds a lease.
func leaseText(h lease.Holder) (string, error) {
	h.Run, h.User = clip(h.Run), clip(h.User)
	text, err := json.Marshal(h)
	if err == nil && len(text)+len(leaseWords) > leaseMax {
		err = fmt.Errorf("describe the lease: %d characters", len(text))
	}
	return leaseWords + string(text), err
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "")
	if runes := []rune(text); len(runes) > wordsMax {
		return string(runes[:wordsMax])
	}
	return text
}

// parseLease reads who holds the lease. What the description does not say is "unknown".
func parseLease(text string) *lease.Holder {
	var h lease.Holder
	if words, ok := strings.CutPrefix(text, leaseWords); !ok || json.Unmarshal([]byte(words), &h) != nil || h.ID == "" {
		return &lease.Holder{ID: "unknown", Run: "unknown", User: "unknown"}
	}
	return &h
}

// Take takes the lease or renews it, as a lease.Place does.
func (l leased) Take(ctx context.Context, o lease.Order) (a lease.Answer, err error) {
	for range takesMax {
		found, err := l.categories.Find(ctx, leaseKey, l.cluster.ID)
		if err != nil {
			return a, err
		}
		if len(found) == 0 {
			text, err := leaseText(renewed(o.Holder))
			if err == nil {
				err = l.categories.Make(ctx, ahv.Category{Key: leaseKey, Value: l.cluster.ID, Description: text})
			}
			if err == nil {
				continue // what Prism has now says who won
			}
			if prism.IsStatus(err, http.StatusConflict) || prism.Uncertain(err) || alreadyExists(err) {
				continue
			}
			return a, err
		}
		a, err = l.over(ctx, found[0].ExtID, o)
		if prism.IsGone(err) {
			continue
		}
		return a, err
	}
	return a, errors.New("the lease comes and goes")
}

// alreadyExists recognises the error of a task that made a category which another had made.
func alreadyExists(err error) bool {
	var e *prism.TaskError
	return errors.As(err, &e) && strings.Contains(strings.ToLower(e.Text), "exist")
}

func renewed(h lease.Holder) lease.Holder {
	h.Renewed = time.Now().UTC().Truncate(time.Second)
	return h
}

// over writes the holder into the category, unless another has the lease.
func (l leased) over(ctx context.Context, id string, o lease.Order) (a lease.Answer, err error) {
	var failed error
	err = l.categories.Edit(ctx, id, func(text string) string {
		a = lease.Answer{}
		mine := renewed(o.Holder)
		now := parseLease(text)
		switch now.ID {
		case o.Holder.ID:
			mine.Fence = max(mine.Fence, now.Fence)
		case o.Over:
			mine.Fence = max(mine.Fence, now.Fence+1)
		default:
			a.Other = now
			return text
		}
		a.Fence = mine.Fence
		var next string
		if next, failed = leaseText(mine); failed != nil {
			return text
		}
		return next
	})
	return a, errors.Join(err, failed)
}

// Drop releases the lease. If that id no longer holds it, Drop has no effect.
func (l leased) Drop(ctx context.Context, id string) error {
	found, err := l.categories.Find(ctx, leaseKey, l.cluster.ID)
	if err != nil || len(found) == 0 {
		return err
	}
	err = l.categories.Edit(ctx, found[0].ExtID, func(text string) string {
		if now := parseLease(text); now.ID != id {
			return text
		}
		return ""
	})
	return gone(err)
}

// Identity is the id of the cluster; see target.Identified.
func (c *cluster) Identity(ctx context.Context) (string, error) {
	if _, err := c.known(ctx); err != nil {
		return "", err
	}
	return c.ahv.ID, nil
}
