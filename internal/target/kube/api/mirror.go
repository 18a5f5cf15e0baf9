package api

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/braggdev/bragg/internal/wait"
)

// Mirror follows the objects of one resource that a selector of labels selects: it lists them once and then watches, so that
// waiting for a thousand pods takes two calls. It starts with its first use.
type Mirror[T any] struct {
	client   *Client
	resource Resource
	selector string

	starting sync.Mutex
	work     sync.WaitGroup
	listing  chan struct{} // held by the caller that lists the objects for all that wait

	mu      sync.Mutex
	started bool
	objects map[string]Seen[T] // by name
	changed chan struct{}      // closed with every change
	down    error              // why the watch is not connected; nil: it is
	refused int                // how often in a row the server refused it
	version string             // of the last change that was seen
	heard   func(Change[T])    // nil: no listener
	begun   uint64             // lists for callers so far
	ended   uint64             // the last of them that has ended
	failed  error              // how that one ended
}

// Seen is one object, as it was when it last changed.
type Seen[T any] struct {
	Name, UID string
	Object    T
}

// Change is one change of an object, for a listener.
type Change[T any] struct {
	Before, Now *Seen[T] // nil: it did not exist, or does not any more
}

// NewMirror makes a mirror. It makes no calls.
func NewMirror[T any](c *Client, r Resource, selector string) *Mirror[T] {
	return &Mirror[T]{client: c, resource: r, selector: selector, objects: map[string]Seen[T]{}, changed: make(chan struct{}), listing: make(chan struct{}, 1)}
}

// Times of watches.
const (
	watchAgain   = 500 * time.Millisecond // after a watch that broke
	watchLongest = 30 * time.Second
	lookMax      = 5 * time.Second
	watchSeconds = 30 * 60 // after which the server ends a watch, which is then repeated
	// A right may be granted again at once, and so may a token be renewed. What is refused so often in a row is refused for good, after
	// about four seconds.
	refusalsMax = 4
)

// Start lists the objects and begins to watch them, unless it does.
func (m *Mirror[T]) Start(ctx context.Context) error {
	m.starting.Lock()
	defer m.starting.Unlock()
	m.mu.Lock()
	started := m.started
	m.mu.Unlock()
	if started {
		return nil
	}
	if err := m.list(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.started = true
	m.mu.Unlock()
	m.work.Go(m.follow)
	return nil
}

// Wait waits for the end of the watch, after the client was closed.
func (m *Mirror[T]) Wait() { m.work.Wait() }

// All returns the objects, current as long as the watch is connected; without one they are listed. Callers do not change them.
func (m *Mirror[T]) All(ctx context.Context) ([]Seen[T], error) {
	if err := m.fresh(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Seen[T], 0, len(m.objects))
	for _, o := range m.objects {
		all = append(all, o)
	}
	return all, nil
}

// Find returns the object of that name, as current as All.
func (m *Mirror[T]) Find(ctx context.Context, name string) (one Seen[T], found bool, err error) {
	if err := m.fresh(ctx); err != nil {
		return one, false, err
	}
	one, found = m.Get(name)
	return one, found, nil
}

// fresh lists the objects where the watch is not connected.
func (m *Mirror[T]) fresh(ctx context.Context) error {
	if err := m.Start(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	down := m.down
	m.mu.Unlock()
	if down == nil {
		return nil
	}
	return m.relist(ctx)
}

// relist lists the objects once for all callers that wait at the same time: a list serves those that came before it began.
func (m *Mirror[T]) relist(ctx context.Context) error {
	m.mu.Lock()
	came := m.begun
	m.mu.Unlock()
	select {
	case m.listing <- struct{}{}:
		defer func() { <-m.listing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	served, err := m.ended > came, m.failed
	m.begun++
	number := m.begun
	m.mu.Unlock()
	if served {
		return err
	}
	err = m.list(ctx)
	if ctx.Err() != nil {
		return err // that of this caller alone
	}
	m.mu.Lock()
	m.ended, m.failed = number, err
	m.mu.Unlock()
	return err
}

// Get returns the object of that name.
func (m *Mirror[T]) Get(name string) (Seen[T], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[name]
	return o, ok
}

// Await calls done with the object of that name, nil if there is none, now and after every change, until done reports true or an
// error. When ctx ends, the error says so, and why the watch was down if it was. A watch that the server refuses for good is an error
// at once.
func (m *Mirror[T]) Await(ctx context.Context, name string, done func(o *Seen[T]) (bool, error)) error {
	if err := m.Start(ctx); err != nil {
		return err
	}
	for {
		m.mu.Lock()
		changed, down, refused := m.changed, m.down, m.refused >= refusalsMax
		o, found := m.objects[name]
		m.mu.Unlock()
		var given *Seen[T]
		if found {
			given = &o
		}
		if ok, err := done(given); ok || err != nil {
			return err
		}
		if refused {
			return down
		}
		select {
		case <-changed:
		case <-m.client.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			m.mu.Lock()
			down := m.down
			m.mu.Unlock()
			if down != nil {
				return fmt.Errorf("%w; watch %s: %w", context.Cause(ctx), m.resource.Resource, down)
			}
			return context.Cause(ctx)
		}
	}
}

// Listen calls heard with every change from now on, one at a time, until the returned function is called. There is one listener.
func (m *Mirror[T]) Listen(heard func(Change[T])) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = heard
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.heard = nil
	}
}

func (m *Mirror[T]) list(ctx context.Context) error {
	all, version, err := list(ctx, m.client, m.resource, metav1.ListOptions{LabelSelector: m.selector})
	if err != nil {
		return err
	}
	fresh := make(map[string]Seen[T], len(all))
	for i := range all {
		one, err := seen[T](&all[i])
		if err != nil {
			return err
		}
		fresh[one.Name] = one
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, before := range m.objects {
		if now, ok := fresh[name]; !ok || now.UID != before.UID {
			m.tell(&before, nil)
		}
	}
	for name, now := range fresh {
		if before, ok := m.objects[name]; ok && before.UID == now.UID {
			m.tell(&before, &now)
		} else if m.started {
			m.tell(nil, &now)
		}
	}
	m.objects, m.version = fresh, version
	m.wake()
	return nil
}

func seen[T any](o *unstructured.Unstructured) (s Seen[T], err error) {
	s.Name, s.UID = o.GetName(), string(o.GetUID())
	return s, decode(o, &s.Object)
}

// tell passes a change on. The caller holds the lock: listeners only take notes.
func (m *Mirror[T]) tell(before, now *Seen[T]) {
	if m.heard != nil {
		m.heard(Change[T]{before, now})
	}
}

// wake lets all who wait look again. The caller holds the lock.
func (m *Mirror[T]) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// follow watches until the client is closed, from the last change that was seen. Where the server has forgotten that one, the
// objects are listed again.
func (m *Mirror[T]) follow() {
	ctx, pause := m.client.ctx, watchAgain
	for ctx.Err() == nil {
		err := m.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			if err = m.list(ctx); err == nil {
				continue
			}
		}
		m.mu.Lock()
		m.down = nil
		if err != nil {
			m.down = m.client.explain("watch "+m.resource.Resource, err)
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			m.refused++
		} else {
			m.refused = 0
		}
		m.wake()
		m.mu.Unlock()
		if err != nil && m.refused == 0 {
			m.look(ctx)
		}
		if wait.For(ctx, pause) != nil {
			return
		}
		if pause = min(2*pause, watchLongest); err == nil { // the watch had been connected
			pause = watchAgain
		}
	}
}

// look lists the objects for those that await a change, once for each watch that breaks.
func (m *Mirror[T]) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, lookMax)
	defer cancel()
	_ = m.list(bounded) // the reason is that of the watch
}

// watch makes one watch and notes its changes; nil: the server ended it.
func (m *Mirror[T]) watch(ctx context.Context) error {
	m.mu.Lock()
	version := m.version
	m.mu.Unlock()
	seconds := int64(watchSeconds)
	w, err := m.client.of(m.resource).Watch(ctx, metav1.ListOptions{
		LabelSelector: m.selector, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return err
	}
	defer w.Stop()
	m.mu.Lock()
	m.down, m.refused = nil, 0
	m.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if err := m.note(e); err != nil {
				return err
			}
		}
	}
}

func (m *Mirror[T]) note(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	o, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a watch sent a %T", e.Object)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version = o.GetResourceVersion()
	if e.Type == watch.Bookmark {
		return nil
	}
	now, err := seen[T](o)
	if err != nil {
		return err
	}
	var before *Seen[T]
	if known, ok := m.objects[now.Name]; ok {
		before = &known
	}
	if e.Type == watch.Deleted {
		if before != nil && before.UID == now.UID {
			delete(m.objects, now.Name)
			m.tell(before, nil)
		}
	} else {
		m.objects[now.Name] = now
		m.tell(before, &now)
	}
	m.wake()
	return nil
}
