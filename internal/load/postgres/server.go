package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

// Server is the database of one prepared load or prefill: a server on the VM, which runs between Up and Close, or an endpoint.
type Server struct {
	Commands
	database.Server
	Version string // of the server; "" before Up

	// smallPages: the scenario asks for huge pages, and the server did not get them.
	smallPages bool
	storage    []string         // its file systems
	peer       program.Endpoint // the settings of a server on another VM
	checkpoint time.Duration    // its checkpoint_timeout, 0 if it does not say
}

// wrong finds the errors in the server's log that end it, with their hints. Those of statements are answers to clients.
func wrong(line string) bool {
	return wrongPattern.MatchString(line) && !strings.Contains(line, "the database system is") // starting up, which clients read
}

var wrongPattern = regexp.MustCompile(`\b(?:FATAL|PANIC|HINT|DETAIL): `)

// Use is what a generator brings to its server.
type Use struct {
	Name  string      // of the generator: its databases are its own
	Needs []load.Need // further programs
	Said  *program.Transcript
}

// Open finds programs, settings of the endpoint and the place of the files. It starts nothing. The caller calls Close, also after an error.
func (c *Config) Open(ctx context.Context, w *load.Workload, u Use) (s *Server, err error) {
	s = &Server{Server: database.NewServer("postgres", u.Said, wrong)}
	s.Commands = Commands{config: c, folder: program.RoomFolder}
	if s.tools, err = program.Find(ctx, slices.Concat(u.Needs, c.Needs()), folders...); err != nil {
		return s, err
	}
	name := program.RoomName{Name: u.Name, Account: account}
	switch {
	case c.Connected():
		s.peer = c.Peer(Role)
		name.Name += fmt.Sprintf("-clients-%d", w.Number)
		s.Room, err = program.OpenRoom(w, name)
		return s, err
	case c.Endpoint == "":
		s.Version = s.tools["postgres"].Version
		name.FileSystem, name.Said = &c.FileSystem, u.Said
		if s.Room, err = program.OpenRoom(w, name, c.Disk, c.LogDisk); err == nil {
			s.storage = s.Room.Storage()
		}
		return s, err
	}
	if s.Endpoint, err = program.ReadEndpoint(c.Endpoint); err != nil {
		return s, err
	}
	name.Name += "-" + c.Endpoint
	s.Room, err = program.OpenRoom(w, name)
	return s, err
}

// variables are those by which PostgreSQL's clients receive the settings of an endpoint.
var variables = []struct{ key, name string }{
	{"host", "PGHOST"}, {"port", "PGPORT"}, {"dbname", "PGDATABASE"}, {"user", "PGUSER"}, {"password", "PGPASSWORD"},
	{"sslmode", "PGSSLMODE"}, {"sslrootcert", "PGSSLROOTCERT"}, {"connect_timeout", "PGCONNECT_TIMEOUT"},
}

// settings are those of a server elsewhere, nil for one of this VM.
func (s *Server) settings() program.Endpoint {
	if s.peer != nil {
		return s.peer
	}
	return s.Endpoint
}

// environment of all programs: nothing of this process's.
func (s *Server) environment() []string {
	settings := s.settings()
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "PGAPPNAME=bragg"}
	if settings["connect_timeout"] == "" {
		env = append(env, "PGCONNECT_TIMEOUT=30")
	}
	for _, v := range variables {
		if value, given := settings[v.key]; given {
			env = append(env, v.name+"="+value)
		}
	}
	return env
}

// Login is how a client connects that does not know the variables of PostgreSQL: as Role, or as the user of the endpoint.
type Login struct {
	Host, Port, SSLMode, Database, User, Password string
	Admin, AdminDatabase                          string // who may make databases; the user of an endpoint itself
}

// Login returns how commands with the room connect.
func (s *Server) Login() Login {
	if !s.config.Elsewhere() { // which trusts everyone who can reach its socket
		return Login{Host: s.Socket(), Port: "5432", SSLMode: "disable", Database: Role, User: Role, Password: Role, Admin: adminRole, AdminDatabase: adminRole}
	}
	e := s.settings()
	l := Login{Host: e["host"], Port: cmp.Or(e["port"], "5432"), SSLMode: cmp.Or(e["sslmode"], "prefer"), User: cmp.Or(e["user"], adminRole), Password: e["password"]}
	l.Database = cmp.Or(e["dbname"], l.User)
	l.Admin, l.AdminDatabase = l.User, l.Database
	return l
}

// Complete adds what all commands of the load have: environment, account and the room.
func (s *Server) Complete(c program.Command) program.Command {
	c.Env = append(s.environment(), c.Env...)
	return s.Room.Confine(c)
}

// Run runs a command to its end and keeps what it prints.
func (s *Server) Run(ctx context.Context, c program.Command) (string, error) {
	return s.RunKept(ctx, s.Complete(c))
}

// Query runs one statement as Role. Its answer has a line for each row, with | between columns.
func (s *Server) Query(ctx context.Context, statement string) (string, error) {
	return s.Run(ctx, s.psql(Role, statement))
}

// Create makes an empty database cluster with a database for Role in place of the former one, and starts it.
func (s *Server) Create(ctx context.Context) error {
	if err := s.Room.Clear(program.DiskFolder(s.config.Disk), program.DiskFolder(s.config.LogDisk)); err != nil {
		return err
	}
	if _, err := s.Run(ctx, s.Initdb()); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, statement := range []string{"CREATE ROLE " + Role + " LOGIN", "CREATE DATABASE " + Role + " OWNER " + Role} {
		if _, err := s.Run(ctx, s.psql(adminRole, statement)); err != nil {
			return err
		}
	}
	return nil
}

// Up starts the server on the data of an earlier Create, or reaches the endpoint, and notes its settings.
func (s *Server) Up(ctx context.Context) (err error) {
	if s.config.Elsewhere() {
		if err := s.reachIt(ctx); err != nil {
			return err
		}
	} else if !s.exists() {
		return database.NoDatabase("disk %s has no database", s.config.Disk)
	} else if err := s.checkWAL(); err != nil {
		return err
	} else if err := s.start(ctx); err != nil {
		return err
	}
	// Texts are left out: addresses, paths, and commands and connections of a superuser, which may have passwords.
	_, err = s.Query(ctx, "SELECT name, setting, unit, source FROM pg_settings"+
		" WHERE source <> 'default' AND vartype <> 'string' AND name <> 'port' ORDER BY name")
	if err != nil {
		return err
	}
	timeout, err := s.Query(ctx, "SELECT setting FROM pg_settings WHERE name = 'checkpoint_timeout' AND unit = 's'")
	if seconds, unknown := strconv.Atoi(strings.TrimSpace(timeout)); unknown == nil {
		s.checkpoint = time.Duration(seconds) * time.Second
	}
	return err
}

// reachIt asks a server elsewhere for its version.
func (s *Server) reachIt(ctx context.Context) (err error) {
	if s.Version, err = s.Query(ctx, "SHOW server_version"); err == nil && s.peer != nil {
		return s.readFacts(ctx)
	}
	if err == nil {
		return nil
	}
	return s.config.Unreachable(err)
}

// exists reports whether the disk has a database cluster.
func (s *Server) exists() bool {
	_, err := os.Stat(s.Room.Path(program.DiskFolder(s.config.Disk), "data", "PG_VERSION"))
	return !errors.Is(err, fs.ErrNotExist)
}

// checkWAL refuses a WAL that is not where the plan has it: only initdb places it.
func (s *Server) checkWAL() error {
	at, _ := os.Readlink(s.Room.Path(program.DiskFolder(s.config.Disk), "data", "pg_wal"))
	own := s.config.LogDisk != s.config.Disk
	if own && strings.HasSuffix(at, "/"+program.DiskFolder(s.config.LogDisk)+"/wal") || !own && at == "" {
		return nil
	}
	return database.NoDatabase("the database on disk %s was made with its WAL on another disk than %s", s.config.Disk, s.config.LogDisk)
}

// start starts the server and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	disk := program.DiskFolder(s.config.Disk)
	for _, name := range []string{disk, program.DiskFolder(s.config.LogDisk), disk + "/run"} {
		if err := s.Room.Make(name); err != nil {
			return err
		}
	}
	if err := s.Start(ctx, s.Complete(s.Postgres()), s.Complete(s.psql(adminRole, "SELECT 1"))); err != nil {
		return err
	}
	s.smallPages = s.config.Setting("huge_pages") == "try" && !hugePages(s.ID())
	return nil
}

// hugePages reports whether a process has a shared mapping in huge pages.
func hugePages(pid int) bool {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return err != nil || strings.Contains(string(maps), "/anon_hugepage")
}

// Stop ends the server, with a last checkpoint if there is time.
func (s *Server) Stop() { s.StopBy(os.Interrupt) }

// Close stops the server and lets other loads use its data.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.Stop()
	return s.Release()
}

// Describe completes the engine of a load by its server.
func (s *Server) Describe(e *interval.Engine) {
	e.Backends = append([]string{"PostgreSQL " + s.Version}, s.storage...)
	e.CheckpointNanos = int64(s.checkpoint)
	if s.smallPages {
		e.Notes = append(e.Notes, interval.EngineNote{Code: interval.NoteSmallPages, Text: "huge_pages=try, and the system had none to give"})
	}
}
