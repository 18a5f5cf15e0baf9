package hammerdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/mariadb"
	"github.com/braggdev/bragg/internal/load/postgres"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/unit"
)

// serverKind is a kind of server that HammerDB tests, and the dialect by which it does.
type serverKind struct {
	name    string // value of the option server
	dialect *Dialect
	// The data of a schema by its warehouses, measured after the build: items and what every server holds, and what a warehouse adds with its
	// indexes.
	bytesBase, bytesPerWarehouse int64
	bytesPerScale                int64 // of TPROC-H, per scale factor
	gauges                       []interval.Gauge
	countQuery                   string // orders and transactions
	// told: Bragg has no client for it, and knows what HammerDB says.
	told  bool
	share interval.GaugeMeaning // of new orders; the usual one if empty
	title string
	read  func(kind *serverKind, o *load.Options, w *load.Workload, own []string) place
}

var serverKinds = []serverKind{
	{name: "postgresql", title: "PostgreSQL", dialect: PostgreSQL, bytesBase: 20 * unit.MiB, bytesPerWarehouse: 98 * unit.MiB, bytesPerScale: scalePostgres, gauges: postgres.Gauges, read: readPostgres,
		countQuery: "SELECT (SELECT sum(d_next_o_id) FROM district), (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database())"},
	{name: "mariadb", title: "MariaDB", dialect: MariaDB, bytesBase: 50 * unit.MiB, bytesPerWarehouse: 128 * unit.MiB, bytesPerScale: scaleMariaDB, gauges: mariadb.Gauges, read: readMariaDB, countQuery: countMySQL},
	{name: "mysql", title: "MariaDB", dialect: MySQL, bytesBase: 50 * unit.MiB, bytesPerWarehouse: 128 * unit.MiB, bytesPerScale: scaleMariaDB, gauges: mariadb.Gauges, read: readMariaDB, countQuery: countMySQL},
	{name: "sqlserver", title: "SQL Server", dialect: SQLServer, bytesPerWarehouse: 100 * unit.MiB, told: true, read: readOutside},
	{name: "oracle", title: "Oracle", dialect: Oracle, bytesPerWarehouse: 100 * unit.MiB, told: true, read: readOutside, share: interval.GaugeNewOrderShareOracle},
}

// countMySQL has the counters that HammerDB takes for TPM. MySQL and MariaDB keep them in different schemas, and each of them reads only its
// own kind of comment.
const countMySQL = "SELECT CONCAT((SELECT SUM(d_next_o_id) FROM district), '|', (SELECT CAST(SUM(VARIABLE_VALUE) AS UNSIGNED) " +
	"FROM /*M! information_schema.GLOBAL_STATUS */ /*!50700 performance_schema.global_status */ WHERE VARIABLE_NAME IN ('Com_commit', 'Com_rollback')));\n"

// Bytes of a scale factor of TPROC-H, measured after the build.
const (
	scalePostgres = 2070 * unit.MiB
	scaleMariaDB  = 1780 * unit.MiB
)

func (k *serverKind) dataBytes(warehouses int) int64 {
	return k.bytesBase + int64(warehouses)*k.bytesPerWarehouse
}

// warehousesFor is the largest number of warehouses whose data fits into size, at least 1.
func (k *serverKind) warehousesFor(size int64) int {
	return int(max(1, (size-k.bytesBase)/k.bytesPerWarehouse))
}

// place is a server as the options of a workload describe it.
type place interface {
	Needs() []load.Need
	PlanData(w *load.Workload, p *load.Plan, d database.Data) error
	// accept sets how many clients of a VM the server must accept, and returns on how many VMs clients are.
	accept(clients int) (vms int)
	// planned are the commands that start a server of its own.
	planned(prefill bool) []program.Command
	// open finds what it needs; its data is in rooms of that name.
	open(ctx context.Context, w *load.Workload, room string, said *program.Transcript) (*server, error)
}

// server is an opened one.
type server struct {
	database.Product
	base    *database.Server
	series  func(ctx context.Context) (database.Series, error)
	connect func(ctx context.Context, countQuery string) (connection, error)
	access  func() Access
	// empty has the statements that remove what HammerDB made beside tables, once those that listing returns are HammerDB's.
	listing string
	empty   []string
	// drop removes the database before TPROC-H is built, "" if that is not needed: HammerDB fails at foreign keys in an empty database of
	// MySQL or MariaDB that exists, and makes one that does not.
	drop string
}

// connection answers the question for the counters of the database.
type connection interface {
	ask(ctx context.Context) ([]string, error)
	Close()
}

type postgresPlace struct{ postgres.Config }

func readPostgres(_ *serverKind, o *load.Options, w *load.Workload, own []string) place {
	return &postgresPlace{postgres.ReadConfig(o, w, own)}
}

func (p *postgresPlace) accept(clients int) int {
	p.Clients = clients
	return p.ClientVMs()
}

func (p *postgresPlace) planned(prefill bool) (list []program.Command) {
	if p.Endpoint != "" {
		return nil
	}
	if prefill {
		list = append(list, p.Planned().Initdb())
	}
	return append(list, p.Planned().Postgres())
}

func (p *postgresPlace) open(ctx context.Context, w *load.Workload, room string, said *program.Transcript) (*server, error) {
	s, err := p.Open(ctx, w, postgres.Use{Name: room, Said: said})
	return &server{Product: s, base: &s.Server,
		series: func(ctx context.Context) (database.Series, error) { return s.OpenSeries(ctx) },
		connect: func(ctx context.Context, query string) (connection, error) {
			conn, err := s.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return postgresConnection{conn}, conn.Prepare(ctx, countName, query)
		},
		access: func() Access {
			l := s.Login()
			return Access{Host: l.Host, Port: l.Port, SSLMode: l.SSLMode, Database: l.Database, User: l.User, Password: l.Password,
				Admin: l.Admin, AdminPassword: l.Password, AdminDatabase: l.AdminDatabase}
		},
		listing: "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
		empty: []string{
			"DO $$ DECLARE r regprocedure; BEGIN FOR r IN SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace " +
				"AND p.proname IN ('dbms_random', 'delivery', 'neword', 'ostat', 'payment', 'slev') LOOP EXECUTE 'DROP ROUTINE ' || r; END LOOP; END $$",
		}}, err
}

const countName = "count"

type postgresConnection struct{ *postgres.Conn }

func (c postgresConnection) ask(ctx context.Context) ([]string, error) { return c.Row(ctx, countName) }

type mariadbPlace struct{ mariadb.Config }

func readMariaDB(_ *serverKind, o *load.Options, w *load.Workload, own []string) place {
	return &mariadbPlace{mariadb.ReadConfig(o, w, own)}
}

func (p *mariadbPlace) accept(clients int) int {
	p.Clients = clients
	return p.ClientVMs()
}

func (p *mariadbPlace) planned(prefill bool) (list []program.Command) {
	if p.Endpoint != "" {
		return nil
	}
	if prefill {
		list = append(list, p.Planned().Install())
	}
	return append(list, p.Planned().Mariadbd())
}

func (p *mariadbPlace) open(ctx context.Context, w *load.Workload, room string, said *program.Transcript) (*server, error) {
	s, err := p.Open(ctx, w, mariadb.Use{Name: room + "-mariadb", Said: said, Login: true})
	opened := &server{Product: s, base: &s.Server,
		series: func(ctx context.Context) (database.Series, error) { return s.OpenSeries(ctx) },
		connect: func(ctx context.Context, query string) (connection, error) {
			asker, _, err := s.Ask(ctx, query)
			if err != nil {
				return nil, err
			}
			return mariadbConnection{asker}, nil
		},
		access: func() Access {
			l := s.Login()
			return Access{Host: l.Host, Port: l.Port, Database: l.Database, User: l.User, Password: l.Password}
		},
		listing: "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"}
	for _, procedure := range []string{"DELIVERY", "NEWORD", "OSTAT", "PAYMENT", "SLEV"} {
		opened.empty = append(opened.empty, "DROP PROCEDURE IF EXISTS "+procedure)
	}
	opened.drop = "DROP DATABASE `" + strings.ReplaceAll(s.Login().Database, "`", "``") + "`"
	if l := s.Login(); err == nil && (l.Database == "" || l.User == "" || l.Password == "") {
		err = &diag.Error{Code: "endpoint-invalid", Exit: diag.ExitUnavailable,
			Message: fmt.Sprintf("endpoint %q: HammerDB needs dbname, user and password on MySQL and MariaDB", p.Endpoint)}
	}
	return opened, err
}

type mariadbConnection struct{ *database.Asker }

func (c mariadbConnection) ask(ctx context.Context) ([]string, error) {
	line, err := c.Answer(ctx)
	return strings.Split(line, "|"), err
}
