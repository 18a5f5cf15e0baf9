package hammerdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// outsidePlace is a SQL Server or an Oracle, which are endpoints: HammerDB alone speaks with them.
type outsidePlace struct {
	database.Place
	kind *serverKind
}

func readOutside(kind *serverKind, o *load.Options, w *load.Workload, own []string) place {
	p := &outsidePlace{Place: database.ReadPlace(o, w, "log_disk"), kind: kind}
	database.Settings{}.Read(o, p.Place, slices.Concat(own, []string{"endpoint"}, database.EndpointNames))
	if p.Endpoint == "" {
		o.Fault("server", "server: a test of %s needs an endpoint", kind.title)
	} else if o.Values[database.KeepName] != "true" {
		o.Fault(database.KeepName, "%s: true is needed: Bragg does not look into databases of %s, and removes none", database.KeepName, kind.title)
	}
	return p
}

func (*outsidePlace) Needs() []load.Need { return nil }

func (p *outsidePlace) PlanData(w *load.Workload, into *load.Plan, d database.Data) error {
	return p.Plan(w, into, d, database.Log{})
}

func (*outsidePlace) accept(int) int { return 1 }

func (*outsidePlace) planned(bool) []program.Command { return nil }

// outside is a server that only HammerDB reaches.
type outside struct {
	database.Server
	kind *serverKind
}

func (p *outsidePlace) open(_ context.Context, w *load.Workload, room string, said *program.Transcript) (opened *server, err error) {
	s := &outside{Server: database.NewServer(p.kind.name, said, nil), kind: p.kind}
	opened = &server{Product: s, base: &s.Server, access: s.access, series: func(context.Context) (database.Series, error) { return silent{}, nil }}
	if s.Endpoint, err = program.ReadEndpoint(p.Endpoint); err != nil {
		return opened, err
	}
	if s.Endpoint["user"] == "" || s.Endpoint["password"] == "" {
		return opened, &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("endpoint %q: HammerDB needs user and password on %s", p.Endpoint, p.kind.title)}
	}
	s.Room, err = program.OpenRoom(w, program.RoomName{Name: room + "-" + p.kind.name + "-" + p.Endpoint})
	return opened, err
}

// oracleUser owns the schema on Oracle, where the user of the endpoint is an administrator.
const oracleUser = "bragg"

// access is that of the endpoint.
func (s *outside) access() Access {
	e := s.Endpoint
	a := Access{Host: e["host"], SSLMode: e["sslmode"], User: e["user"], Password: e["password"]}
	if s.kind.dialect == Oracle {
		a.Port, a.Database = cmp.Or(e["port"], "1521"), e["dbname"]
		a.Admin, a.AdminPassword, a.User = a.User, a.Password, oracleUser
	} else {
		a.Port, a.Database = cmp.Or(e["port"], "1433"), cmp.Or(e["dbname"], "tpcc")
	}
	return a
}

// Create and Query are not there: HammerDB builds in an empty database or refuses to.
func (s *outside) Create(context.Context) error { return nil }

func (s *outside) Query(context.Context, string) (string, error) {
	return "", errors.New("no client of " + s.kind.title)
}

// Listen is not there either: the server is elsewhere.
func (s *outside) Listen(context.Context, database.Address) error {
	return errors.New("no server of " + s.kind.title)
}

func (*outside) Taken(error) bool { return false }

func (s *outside) Up(context.Context) error { return nil }

func (s *outside) Stop() {}

func (s *outside) Close() error { return s.Release() }

// Complete gives commands the room.
func (s *outside) Complete(c program.Command) program.Command { return s.Room.Confine(c) }

// Describe notes what was not tried.
func (s *outside) Describe(e *interval.Engine) { e.Backends = []string{s.kind.title} }

// notTried is in plans and reports: no such server was at hand.
func (k *serverKind) notTried() interval.EngineNote {
	return interval.EngineNote{Code: "not-tried", Text: "tests of HammerDB on " + k.title + " were not run with Bragg: scripts follow HammerDB's settings, results are read as it documents them"}
}

// silent is a server that says nothing of itself.
type silent struct{}

func (silent) Begin() interval.GaugeValues { return nil }

func (silent) Look(time.Duration) (interval.GaugeValues, bool) { return nil, false }

func (silent) Close() {}
