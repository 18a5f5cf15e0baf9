// Package httpbound bounds what a management service can make this program read, and keeps credentials at the address that they are for. It is
// for clients whose library reads whole answers by itself; it knows nothing of their content.
//
//	Transport ──▶ answer ──▶ body, after decompression: at most BytesMax, within TimeMax, within the Budget of its context
//	Refuse    ──▶ redirections are errors, because the library would repeat the request with its credential elsewhere
package httpbound

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// Transport bounds the bodies of answers.
type Transport struct {
	Next     http.RoundTripper
	BytesMax int64         // of one body
	TimeMax  time.Duration // from the headers of an answer to its end; 0: the context of the request bounds it
	// Endless reports whether a successful answer to a request is a stream, which has no bounds; may be nil.
	Endless func(*http.Request) bool
}

// SizeError is an answer that has more bytes than its bound.
type SizeError struct{ BytesMax int64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the answer has more than %d MiB", e.BytesMax>>20)
}

// TimeError is an answer that did not end in time.
type TimeError struct{ TimeMax time.Duration }

func (e *TimeError) Error() string { return fmt.Sprintf("the answer did not end within %s", e.TimeMax) }

// RedirectError is an answer that points to another address, without the path, which may hold a secret.
type RedirectError struct{ Host string }

func (e *RedirectError) Error() string {
	return fmt.Sprintf("a redirection to %q is not followed", e.Host)
}

// Refuse is a CheckRedirect of http.Client.
func Refuse(r *http.Request, _ []*http.Request) error {
	return &RedirectError{(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}).String()}
}

type budgetKey struct{}

type budget struct {
	bytesMax int64
	left     atomic.Int64
}

// Budget bounds the bodies of all answers to requests with the context together, such as the pages of a list.
func Budget(ctx context.Context, bytesMax int64) context.Context {
	b := &budget{bytesMax: bytesMax}
	b.left.Store(bytesMax)
	return context.WithValue(ctx, budgetKey{}, b)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.Next.RoundTrip(r)
	if err != nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	if t.Endless != nil && answer.StatusCode/100 == 2 && t.Endless(r) {
		return answer, nil
	}
	b := &body{ReadCloser: answer.Body, left: t.BytesMax, bytesMax: t.BytesMax, timeMax: t.TimeMax}
	b.budget, _ = r.Context().Value(budgetKey{}).(*budget)
	if t.TimeMax > 0 {
		b.timer = time.AfterFunc(t.TimeMax, func() {
			b.late.Store(true)
			_ = b.ReadCloser.Close() // ends a Read that waits
		})
	}
	answer.Body = b
	return answer, nil
}

// CloseIdleConnections closes those of the next transport; http.Client looks for it.
func (t *Transport) CloseIdleConnections() {
	if next, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}

// body is the body of an answer, with its bounds.
type body struct {
	io.ReadCloser
	bytesMax, left int64
	budget         *budget // nil: none
	timeMax        time.Duration
	timer          *time.Timer // nil: none
	late           atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case b.left < 0:
		return 0, &SizeError{b.bytesMax}
	case b.budget != nil && b.budget.left.Add(-int64(n)) < 0:
		return 0, &SizeError{b.budget.bytesMax}
	case err != nil && err != io.EOF && b.late.Load():
		return n, &TimeError{b.timeMax}
	}
	return n, err
}

func (b *body) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	return b.ReadCloser.Close()
}
