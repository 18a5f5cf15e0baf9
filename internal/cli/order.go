package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braggdev/bragg/internal/cli/targets"
	"github.com/braggdev/bragg/internal/console"
	"github.com/braggdev/bragg/internal/metric"
	"github.com/braggdev/bragg/internal/planner"
	"github.com/braggdev/bragg/internal/session"
	"github.com/braggdev/bragg/internal/unit"
)

// order holds the flags of plan, run and demo that select what to run and where.
type order struct {
	choice
	target, runs, engine string
	rehearse             time.Duration
	rehearseSize         string
	seed                 uint64
	allowShell           bool
	maxFull              float64
	remoteWrite          string
	remoteQuantiles      bool
	rateFactor           float64 // of all rates of the scenario; 0: as they are
	// given reports whether a flag is on the command line: an explicit zero differs from none. Nil: no flag is given.
	given func(flag string) bool
}

// seedDefault makes repeated runs do the same operations; --seed changes them.
const seedDefault = 1

func (o *order) flags(p *console.Process, cmd *cobra.Command) {
	flags := cmd.Flags()
	o.given = flags.Changed
	o.choice.flags(flags)
	o.targetFlags(p, flags)
	flags.StringVar(&o.engine, "engine", "", fmt.Sprintf("load `ENGINE`: %s (default: as in the scenario, else %s)",
		strings.Join(session.Catalog().Generators.OfJobFiles().Names(), " or "), session.Catalog().Generators.Default()))
	flags.DurationVar(&o.rehearse, "rehearse", 0, "scale the run down to about this `TIME` and little data: 60s")
	flags.StringVar(&o.rehearseSize, "rehearse-size", "", "maximum `BYTES` of data in a rehearsal (default 2GiB or a quarter of the free space)")
	flags.Uint64Var(&o.seed, "seed", seedDefault, "seed `NUMBER` of offsets and content; equal seeds give equal operations")
	flags.BoolVar(&o.allowShell, "allow-shell", false, "allow the scenario to run programs; only for trusted scenarios")
	flags.Float64Var(&o.maxFull, "max-full", 0, "maximum fill level of the storage in `PERCENT` (default 70)")
}

// remoteFlags adds the flags of commands that record samples.
func (o *order) remoteFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.remoteWrite, "remote-write", "", "write samples during the run to the Prometheus-compatible store at `URL`")
	flags.BoolVar(&o.remoteQuantiles, "remote-write-quantiles", false, "write per-second quantiles there instead of native histograms")
}

func (o *order) targetFlags(p *console.Process, flags *pflag.FlagSet) {
	flags.StringVar(&o.target, "target", "local", "`TARGET`: local, local:NODES, fake:NODES or a target file")
	p.RunsFlag(flags, &o.runs)
}

// Bounds of --rehearse: shorter leaves nothing to measure, longer is not a rehearsal.
const (
	rehearseMin = time.Second
	rehearseMax = 24 * time.Hour
)

// make turns the flags into an order for one scenario; every error is a usage error.
func (o *order) make(p *console.Process, word, label string) (session.Order, error) {
	var made session.Order
	variables, err := o.options()
	if err != nil {
		return made, err
	}
	source, err := sourceOf(p, word)
	if err != nil {
		return made, err
	}
	var size int64
	if o.rehearseSize != "" {
		if size, err = unit.ParseBytes(o.rehearseSize); err != nil || size < unit.MiB {
			return made, console.BadFlag("--rehearse-size "+strconv.Quote(o.rehearseSize)+" is not a size of at least 1 MiB", "for example --rehearse-size 512MiB")
		}
	}
	rehearsal := o.rehearse != 0 || o.given != nil && o.given("rehearse")
	if rehearsal && (o.rehearse < rehearseMin || o.rehearse > rehearseMax) {
		return made, console.BadFlag(fmt.Sprintf("--rehearse %v is not between %v and %.0fh", o.rehearse, rehearseMin, rehearseMax.Hours()), "for example --rehearse 60s")
	}
	if o.rehearseSize != "" && !rehearsal {
		return made, console.BadFlag("--rehearse-size has no meaning without --rehearse", "for example --rehearse 60s --rehearse-size 512MiB")
	}
	if o.maxFull < 0 || o.maxFull > 100 {
		return made, console.BadFlag(fmt.Sprintf("--max-full %v is not a percentage", o.maxFull), "for example --max-full 85")
	}
	if err := o.checkEngine(); err != nil {
		return made, err
	}
	remote, err := o.remote(p)
	if err != nil {
		return made, err
	}
	return session.Order{
		RemoteWrite: remote,
		Source:      source, Variables: variables, Target: targets.Path(p, o.target), Runs: p.RunsDirectory(o.runs), Label: label,
		Plan: planner.Options{
			Engine: o.engine, Seed: o.seed, Rehearse: o.rehearse, RehearseBytes: size, AllowShell: o.allowShell,
			FullPercentMax: o.maxFull, RateFactor: o.rateFactor,
		},
		Program: targets.Program(p),
	}, nil
}

// Environment variables for the credentials of a store. They are never on the command line, which every process of a machine can
// read.
const (
	envAuthorization     = "BRAGG_REMOTE_WRITE_AUTHORIZATION"
	envAuthorizationFile = "BRAGG_REMOTE_WRITE_AUTHORIZATION_FILE"
	envRemoteQuery       = "BRAGG_REMOTE_WRITE_QUERY"
	authorizationMax     = 64 << 10
)

// remote reads where samples are written in addition to the bundle.
func (o *order) remote(p *console.Process) (metric.RemoteOptions, error) {
	r := metric.RemoteOptions{URL: o.remoteWrite, Query: p.Getenv(envRemoteQuery), Quantiles: o.remoteQuantiles}
	if r.URL == "" {
		if r.Quantiles {
			return r, console.BadFlag("--remote-write-quantiles has no meaning without --remote-write", "name the store: --remote-write URL")
		}
		return r, nil
	}
	if err := r.Validate(); err != nil {
		return r, err
	}
	r.Authorization = p.Getenv(envAuthorization)
	if path := p.Getenv(envAuthorizationFile); path != "" && r.Authorization == "" {
		text, err := os.ReadFile(p.Path(path))
		if err != nil {
			return r, fmt.Errorf("read %s: %w", envAuthorizationFile, err)
		}
		r.Authorization = strings.TrimSpace(string(text[:min(len(text), authorizationMax)]))
	}
	if strings.ContainsAny(r.Authorization, "\r\n") {
		return r, console.BadFlag(envAuthorization+" has more than one line", "set it to the header value, for example: Bearer TOKEN")
	}
	return r, nil
}

func (o *order) checkEngine() error {
	names := session.Catalog().Generators.OfJobFiles().Names()
	if o.engine == "" || slices.Contains(names, o.engine) {
		return nil
	}
	return console.BadFlag("unknown engine "+strconv.Quote(o.engine), "choose one of "+strings.Join(names, ", "))
}
