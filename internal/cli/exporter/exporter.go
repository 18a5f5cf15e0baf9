// Package exporter has the command exporter: what storage systems count as metrics for other Prometheus servers.
//
//	flags or a target file ──▶ sources ──collect/exporter──▶ /metrics, one exposition, or a Pushgateway
package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/collect/builtin"
	"github.com/braggdev/bragg/internal/collect/exporter"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	targetbuiltin "github.com/braggdev/bragg/internal/target/builtin"
	"github.com/braggdev/bragg/internal/textio"
)

const (
	listenDefault = "127.0.0.1:9465"
	// Environment variables with the value of the header Authorization for a Pushgateway, or the path of a file with it.
	envAuthorization     = "BRAGG_PUSH_AUTHORIZATION"
	envAuthorizationFile = "BRAGG_PUSH_AUTHORIZATION_FILE"
	authorizationMax     = 64 << 10
)

// New returns the command exporter with a command for each storage system.
func New(p *console.Process) *cobra.Command {
	var verbs []*cobra.Command
	for _, kind := range builtin.Kinds() {
		if !(target.Source{Kind: kind.Name}).IsExporter() {
			verbs = append(verbs, newKind(p, kind))
		}
	}
	return console.HoldsVerbs(&cobra.Command{
		Use:   "exporter",
		Short: "Serve counters of storage systems as Prometheus metrics",
	}, verbs...)
}

// options are the flags of one command.
type options struct {
	kind string

	target, source string // a target file, and one of its sources

	name, url, user, secretEnv, secretFile string
	tls, fingerprint, caFile               string
	interval                               time.Duration
	objects                                []string

	listen, webConfig string
	once              bool
	gateway           exporter.Gateway
}

func newKind(p *console.Process, kind collect.Kind) *cobra.Command {
	o := options{kind: kind.Name}
	cmd := &cobra.Command{
		Use:   kind.Name,
		Short: kind.Summary,
		Long: "Reads the counters of a storage system at each scrape and serves them on /metrics. Without --web-config-file there is\n" +
			"no authentication: listen on an address that only your Prometheus can reach. Names and units are those of runs with\n" +
			"a source of this kind.\n\n" +
			"The system and its credential are given by flags, or by --target as in the sources of a target file. Secrets are\n" +
			"read from an environment variable or a file and are never printed.",
		Example: fmt.Sprintf("  bragg exporter %[1]s --url https://storage.lab --user viewer --secret-env STORAGE_PASSWORD --once\n"+
			"  bragg exporter %[1]s --target cluster.yml --listen 10.0.0.1:9465\n"+
			"  bragg exporter %[1]s --target cluster.yml --push http://pushgateway:9091 --group run=nightly --delete-on-exit", kind.Name),
		Args: console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), p, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.target, "target", "", "read the sources of this kind in target `FILE`")
	flags.StringVar(&o.source, "source", "", "serve only the source `NAME` of the target file")
	flags.StringVar(&o.name, "name", kind.Name, "label source of the metrics")
	flags.StringVar(&o.url, "url", "", "address of the management: `https://HOST`")
	flags.StringVar(&o.user, "user", "", "`USER` with read-only rights")
	flags.StringVar(&o.secretEnv, "secret-env", "", "environment `VARIABLE` with the password, or with a token if there is no user")
	flags.StringVar(&o.secretFile, "secret-file", "", "`FILE` with it")
	flags.StringVar(&o.tls, "tls", "", "`MODE`: verified (default), unverified, or none for a password over http")
	flags.StringVar(&o.fingerprint, "fingerprint", "", "`SHA256` of the only certificate that is accepted")
	flags.StringVar(&o.caFile, "ca-file", "", "PEM `FILE` of the authority that signed the certificate")
	flags.DurationVar(&o.interval, "interval", kind.Interval, "time between two readings")
	flags.StringSliceVar(&o.objects, "objects", nil, "read only these `NAMES`; a name may end with *")
	flags.StringVar(&o.listen, "listen", listenDefault, "serve on `HOST:PORT`; port 0 selects a free one")
	flags.StringVar(&o.webConfig, "web-config-file", "", "`FILE` with TLS and users for scrapes, as web.config.file of Prometheus exporters")
	flags.BoolVar(&o.once, "once", false, "print the metrics once and end; counters are read twice, an interval apart")
	flags.StringVar(&o.gateway.URL, "push", "", "push to the Pushgateway at `URL` every interval, or once with --once, instead of serving")
	flags.StringVar(&o.gateway.Job, "job", "bragg", "`JOB` of pushed metrics")
	flags.StringToStringVar(&o.gateway.Grouping, "group", nil, "further grouping `KEY=VALUE,...` of pushed metrics")
	flags.BoolVar(&o.gateway.Delete, "delete-on-exit", false, "delete the pushed group at the end")
	return cmd
}

func run(ctx context.Context, p *console.Process, o options) error {
	if o.webConfig != "" {
		o.webConfig = p.Path(o.webConfig)
	}
	config, sources, err := o.sources(p)
	if err != nil {
		return err
	}
	if err := o.checkPush(p); err != nil {
		return err
	}
	var list []exporter.Source
	for _, s := range sources {
		list = append(list, exporter.Source{Source: s, Open: func(ctx context.Context) (collect.Collector, error) {
			return builtin.Open(ctx, &config, collect.Options{Source: s})
		}})
	}
	e := exporter.New(list)
	e.Report = func(source string, err error) {
		fmt.Fprintf(p.Stderr, "%s: %s\n", textio.Line(source), textio.Line(diag.Sentence(err)))
	}
	stop, done := p.WatchSignals(ctx, func(int) {})
	defer done()
	err = o.do(stop.Begun, p, e)
	_ = e.Close() // a session that cannot be ended expires
	switch {
	case stop.Stopped() && o.once:
		return console.ExitWith(diag.ExitInterrupted)
	case err != nil && !stop.Stopped():
		return unavailable(err)
	}
	return nil
}

// do serves, prints or pushes until ctx ends.
func (o options) do(ctx context.Context, p *console.Process, e *exporter.Exporter) error {
	switch {
	case o.gateway.URL != "" && o.once:
		e.Report = nil // the error says it
		return e.Push(ctx, o.gateway, 0)
	case o.once:
		e.Report = nil
		return e.Write(ctx, p.Stdout)
	case o.gateway.URL != "":
		return e.Push(ctx, o.gateway, o.interval)
	}
	if err := exporter.CheckWebConfig(o.webConfig); err != nil {
		return &diag.Error{Code: "exporter-web", Exit: diag.ExitData, Message: err.Error(), Hint: "the format is that of web.config.file of Prometheus exporters"}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	if o.webConfig == "" {
		fmt.Fprintf(p.Stderr, "metrics: http://%s/metrics%s\n", listener.Addr(), openTo(listener.Addr()))
	} else {
		fmt.Fprintf(p.Stderr, "metrics: %s, with TLS and users of %s\n", listener.Addr(), textio.Line(o.webConfig))
	}
	return e.Serve(ctx, listener, o.webConfig)
}

// openTo says that an address without TLS and users can be reached from other machines; "" if it cannot.
func openTo(a net.Addr) string {
	if at, ok := a.(*net.TCPAddr); ok && at.IP.IsLoopback() {
		return ""
	}
	return ", for every machine that reaches it: --web-config-file sets TLS and users"
}

// unavailable gives an error without an exit code that of a target that is away.
func unavailable(err error) error {
	var told *diag.Error
	if errors.As(err, &told) || console.OutputClosed(err) {
		return err
	}
	return &diag.Error{Code: "exporter", Message: err.Error(), Exit: diag.ExitUnavailable}
}

// sources returns those of the target file, or the one that flags describe.
func (o options) sources(p *console.Process) (target.Config, []target.Source, error) {
	var config target.Config
	switch {
	case o.target != "" && (o.url != "" || o.user != "" || o.secretEnv != "" || o.secretFile != "" || o.fingerprint != "" || o.caFile != "" || o.tls != ""):
		return config, nil, console.BadFlag("--target has the address and the credential of its sources", "omit --url and the flags for it")
	case o.target == "" && o.url == "":
		return config, nil, console.BadFlag("no storage system given", "--url https://HOST, or --target FILE with sources of kind "+o.kind)
	}
	var err error
	if o.target != "" {
		config, err = targetbuiltin.Load(p.Path(o.target))
	} else {
		config, err = o.config()
	}
	if err != nil {
		return config, nil, err
	}
	var list []target.Source
	for _, s := range builtin.Sources(&config) {
		if s.Kind == o.kind && (o.source == "" || o.source == s.Name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return config, nil, &diag.Error{Code: "exporter-sources", Exit: diag.ExitData, Message: fmt.Sprintf("no source of kind %s in %q", o.kind, o.target),
			Hint: "docs/formats/target.md describes sources"}
	}
	return config, list, nil
}

// config is the target file that flags describe, which is checked like any other.
func (o options) config() (target.Config, error) {
	source := map[string]any{"name": o.name, "kind": o.kind, "url": o.url, "interval": o.interval.String()}
	for key, value := range map[string]string{"tls": o.tls, "fingerprint": o.fingerprint, "ca_file": o.caFile} {
		if value != "" {
			source[key] = value
		}
	}
	if len(o.objects) > 0 {
		source["objects"] = o.objects
	}
	file := map[string]any{"provider": "local", "sources": []any{source}}
	switch {
	case o.secretEnv != "" && o.secretFile != "":
		return target.Config{}, console.BadFlag("want either --secret-env or --secret-file", "")
	case o.user != "" && o.secretEnv == "" && o.secretFile == "":
		return target.Config{}, console.BadFlag("--user needs a password", "--secret-env VARIABLE or --secret-file FILE")
	case o.secretEnv != "" || o.secretFile != "":
		secret := map[string]string{"env": o.secretEnv}
		if o.secretFile != "" {
			secret = map[string]string{"file": o.secretFile}
		}
		credential := map[string]any{"secret": secret}
		if o.user != "" {
			credential["user"] = o.user
		}
		file["credentials"], source["credential"] = map[string]any{"flags": credential}, "flags"
	}
	text, err := json.Marshal(file)
	if err != nil {
		return target.Config{}, fmt.Errorf("read flags: %w", err)
	}
	config, list := target.ParseConfig("flags", text, targetbuiltin.Providers())
	if list.HasErrors() {
		return config, console.BadFlag("--"+list[0].Message, list[0].Hint)
	}
	return config, nil
}

// checkPush checks the flags for a Pushgateway and reads its credential.
func (o *options) checkPush(p *console.Process) error {
	if o.gateway.URL == "" {
		return nil
	}
	if err := o.gateway.Validate(); err != nil {
		return console.BadFlag("--push: "+err.Error(), "credentials belong in "+envAuthorization+" or "+envAuthorizationFile)
	}
	o.gateway.Authorization = p.Getenv(envAuthorization)
	if path := p.Getenv(envAuthorizationFile); path != "" && o.gateway.Authorization == "" {
		text, err := os.ReadFile(p.Path(path))
		if err == nil && len(text) > authorizationMax {
			err = fmt.Errorf("more than %d bytes", authorizationMax)
		}
		if err != nil {
			return &diag.Error{Code: "exporter-push", Exit: diag.ExitUsage, Message: "read " + envAuthorizationFile, Err: err}
		}
		o.gateway.Authorization = strings.TrimSpace(string(text))
	}
	return nil
}
