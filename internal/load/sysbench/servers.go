package sysbench

import (
	"context"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/mariadb"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// serverKind is a kind of server that sysbench can test.
type serverKind struct {
	name   string // value of the option server
	title  string
	driver string // of sysbench
	// rowBytes are a row and its entries in both indexes after a prefill, measured; baseBytes what every database holds.
	rowBytes, baseBytes int64
	gauges              []interval.Gauge
	read                func(o *load.Options, w *load.Workload, own []string, clients int) place
}

var serverKinds = []serverKind{
	{name: "postgresql", title: "PostgreSQL", driver: "pgsql", rowBytes: 255, baseBytes: 8 * unit.MiB, gauges: postgres.Gauges, read: readPostgres},
	{name: "mariadb", title: "MariaDB", driver: "mysql", rowBytes: 260, baseBytes: 48 * unit.MiB, gauges: mariadb.Gauges, read: readMariaDB},
}

// place is a server as the options of a workload describe it.
type place interface {
	Needs() []load.Need
	PlanData(w *load.Workload, p *load.Plan, d database.Data) error
	// planned are the commands that start it, and the options by which sysbench reaches it.
	planned(prefill bool) (commands []program.Command, reach []string)
	open(ctx context.Context, w *load.Workload, said *program.Transcript) (*server, error)
	// buffers is the memory in which it keeps its data, 0 if unknown.
	buffers() int64
}

// server is an opened one.
type server struct {
	product
	reach  []string
	series func(ctx context.Context) (database.Series, error)
}

// product is what differs between kinds of servers.
type product interface {
	database.Product
	Explain(err error) error
	While(ctx context.Context) (context.Context, context.CancelFunc)
}

type postgresPlace struct{ postgres.Config }

func readPostgres(o *load.Options, w *load.Workload, own []string, clients int) place {
	c := postgres.ReadConfig(o, w, own)
	c.Clients = clients
	return &postgresPlace{c}
}

func (p *postgresPlace) planned(prefill bool) (list []program.Command, reach []string) {
	k := p.Planned()
	if p.Endpoint == "" && prefill {
		list = append(list, k.Initdb())
	}
	if p.Endpoint == "" {
		list = append(list, k.Postgres())
	}
	return list, p.reach(k)
}

// reach is how sysbench finds the server. Settings of one elsewhere are in its environment, where empty options let them count.
func (p *postgresPlace) reach(k postgres.Commands) []string {
	if p.Elsewhere() {
		return []string{"--pgsql-host=", "--pgsql-port=", "--pgsql-user=", "--pgsql-db="}
	}
	return []string{"--pgsql-host=" + k.Socket(), "--pgsql-user=" + postgres.Role, "--pgsql-db=" + postgres.Role}
}

func (p *postgresPlace) open(ctx context.Context, w *load.Workload, said *program.Transcript) (*server, error) {
	s, err := p.Open(ctx, w, postgres.Use{Name: Name + "-postgresql", Said: said})
	return &server{product: s, reach: p.reach(s.Commands),
		series: func(ctx context.Context) (database.Series, error) { return s.OpenSeries(ctx) }}, err
}

// buffers is unknown: the page cache of the system is a part of them.
func (*postgresPlace) buffers() int64 { return 0 }

type mariadbPlace struct{ mariadb.Config }

func readMariaDB(o *load.Options, w *load.Workload, own []string, clients int) place {
	c := mariadb.ReadConfig(o, w, own)
	c.Clients = clients
	return &mariadbPlace{c}
}

func (p *mariadbPlace) planned(prefill bool) (list []program.Command, reach []string) {
	k := p.Planned()
	if p.Endpoint == "" && prefill {
		list = append(list, k.Install())
	}
	if p.Endpoint == "" {
		list = append(list, k.Mariadbd())
	}
	return list, k.Reach()
}

func (p *mariadbPlace) open(ctx context.Context, w *load.Workload, said *program.Transcript) (*server, error) {
	s, err := p.Open(ctx, w, mariadb.Use{Name: Name + "-mariadb", Said: said})
	return &server{product: s, reach: s.Reach(),
		series: func(ctx context.Context) (database.Series, error) { return s.OpenSeries(ctx) }}, err
}

func (p *mariadbPlace) buffers() int64 {
	if p.Endpoint != "" {
		return 0
	}
	return p.PoolBytes()
}
