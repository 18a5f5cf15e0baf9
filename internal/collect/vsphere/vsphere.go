// Package vsphere reads performance counters of vCenter or an ESXi host: hosts, datastores as hosts see them, and VMs with their virtual
// disks.
//
//	session ──inventory.go──▶ hosts, VMs, datastores ──query.go──▶ QueryPerf (real-time, 20 s) ──counters.go──▶ samples
//
// ESXi measures in intervals of 20 seconds and keeps them for an hour; vCenter shows an interval up to another 20 seconds later. Samples have the
// times of those intervals. One unknown counter fails a whole query, so only counters that the server lists are requested.
package vsphere

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/performance"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/httpbound"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/textio"
	"github.com/braggdev/bragg/internal/trust"
)

// Kind returns the kind of this package.
func Kind() collect.Kind {
	return collect.Kind{Name: target.SourceVSphere, Summary: "vCenter or ESXi: hosts, datastores and VMs by QueryPerf", Interval: interval, Open: Open}
}

const (
	interval       = 20 * time.Second // of real-time statistics
	logoutTimeout  = 5 * time.Second
	reasonRunesMax = 300
	answerBytesMax = 32 << 20
	answerTimeMax  = 30 * time.Second
	readingMax     = 256 << 20 // bytes of all answers of one reading
)

// reader is one session with a server.
type reader struct {
	o        collect.Options
	hidden   *strings.Replacer // of the password
	client   *vim25.Client
	manager  *performance.Manager
	sessions *session.Manager
	counters map[string]int32 // name → id, of those that the server has
}

// Open logs in. The user needs read-only rights.
func Open(ctx context.Context, o collect.Options) (collect.Collector, error) {
	u, err := url.Parse(o.Source.URL)
	if err != nil {
		return nil, fmt.Errorf("source %q: invalid url", o.Source.Name)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = vim25.Path
	}
	// govmomi verifies by itself unless it is insecure; the certificate is checked by the configuration below in both cases.
	client := soap.NewClient(u, false)
	transport := client.DefaultTransport()
	if u.Scheme == "https" {
		config, err := o.Trust("vCenter").ClientConfig(u.Hostname())
		if err != nil {
			return nil, fmt.Errorf("source %q: %w", o.Source.Name, err)
		}
		verified(transport, config)
	}
	transport.Proxy = nil
	// A redirection would repeat the login, with the password, at another address.
	client.CheckRedirect = httpbound.Refuse
	client.Transport = &httpbound.Transport{Next: transport, BytesMax: answerBytesMax, TimeMax: answerTimeMax}
	r := &reader{o: o, hidden: collect.Hiding(o)}
	if r.client, err = vim25.NewClient(ctx, client); err != nil {
		return nil, r.explain(err)
	}
	r.sessions = session.NewManager(r.client)
	if err := r.login(ctx); err != nil {
		client.CloseIdleConnections()
		return nil, err
	}
	return r, nil
}

// verified sets how certificates are checked.
func verified(transport *http.Transport, config *tls.Config) {
	transport.TLSClientConfig = config
	transport.DialTLSContext = nil // govmomi's own check of thumbprints
}

func (r *reader) login(ctx context.Context) error {
	if err := r.sessions.Login(ctx, url.UserPassword(r.o.User, r.o.Secret)); err != nil {
		return r.explain(err)
	}
	r.manager = performance.NewManager(r.client)
	list, err := r.manager.CounterInfoByName(ctx)
	if err != nil {
		return r.explain(err)
	}
	r.counters = map[string]int32{}
	for name, info := range list {
		r.counters[name] = info.Key
	}
	return nil
}

// Collect implements collect.Collector. A session that expired is renewed once.
func (r *reader) Collect(ctx context.Context) (collect.Reading, error) {
	reading, err := r.read(ctx)
	if fault.Is(err, &types.NotAuthenticated{}) {
		if err := r.login(ctx); err != nil {
			return collect.Reading{}, err
		}
		reading, err = r.read(ctx)
	}
	if err != nil {
		return collect.Reading{}, r.explain(err)
	}
	return reading, nil
}

func (r *reader) read(ctx context.Context) (collect.Reading, error) {
	ctx = httpbound.Budget(ctx, readingMax)
	clock, err := methods.GetCurrentTime(ctx, r.client)
	if err != nil {
		return collect.Reading{}, err
	}
	reading := collect.Reading{Clock: *clock}
	inventory, err := r.inventory(ctx)
	if err != nil {
		return collect.Reading{}, err
	}
	reading.Samples = inventory.capacities()
	for _, of := range []struct {
		objects []object
		wanted  []counter
	}{{inventory.hosts, hostCounters}, {inventory.vms, vmCounters}} {
		samples, err := r.query(ctx, of.objects, of.wanted, inventory)
		if err != nil {
			return collect.Reading{}, err
		}
		reading.Samples = append(reading.Samples, samples...)
	}
	return reading, nil
}

// explain names the source, and keeps hints on certificates. Faults of vSphere do not contain passwords.
func (r *reader) explain(err error) error {
	var wrong *trust.CertificateError
	var told *diag.Error
	switch {
	case errors.As(err, &told):
		return err
	case errors.As(err, &wrong):
		return &diag.Error{Code: "source-certificate", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("source %q: %s", r.o.Source.Name, wrong.Reason), Hint: wrong.Hint}
	case fault.Is(err, &types.InvalidLogin{}):
		return &diag.Error{Code: "source-login", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("source %q: vSphere refused the user or password", r.o.Source.Name)}
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return fmt.Errorf("source %q: %w", r.o.Source.Name, clipped{err, r.hidden})
}

// clipped bounds the text of an error of the server.
type clipped struct {
	error
	hidden *strings.Replacer
}

func (c clipped) Error() string {
	return textio.Clip(textio.Line(c.hidden.Replace(c.error.Error())), reasonRunesMax)
}
func (c clipped) Unwrap() error { return c.error }

// Close implements collect.Collector: it logs out.
func (r *reader) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), logoutTimeout)
	defer cancel()
	err := r.sessions.Logout(ctx)
	r.client.CloseIdleConnections()
	if err != nil {
		return r.explain(err)
	}
	return nil
}
