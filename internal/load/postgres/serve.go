package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// listener is where a server answers clients on other VMs; without a port it has its socket only.
type listener struct{ address, port string }

const (
	accessFile = "access.conf"
	// access lets Role of other VMs in by the secret of the load, and everyone who can enter the folder of the socket.
	access = "local all all trust\nhost " + Role + " " + Role + " all scram-sha-256\n"
	// portTries bounds how often a port is chosen: another program may take it before the server does.
	portTries = 3
)

// peerSettings are those of the server that this VM is a client of.
func (c *Config) peerSettings() program.Endpoint {
	p := c.remote.Peers[0]
	return program.Endpoint{"host": p.Address, "port": strconv.Itoa(p.Port), "dbname": Role, "user": Role, "password": c.password(), "sslmode": "disable"}
}

func (c *Config) password() string { return hex.EncodeToString(c.remote.Secret) }

// serving is the end of a load that has its server; see load.Server.
type serving struct {
	server   *Server
	workload load.Workload
	port     int
}

var (
	_ load.Instance = (*serving)(nil)
	_ load.Server   = (*serving)(nil)
	_ load.Teller   = (*serving)(nil)
)

// Serve starts the server of a load for its clients on other VMs. The data is that of the prefill with the same Use.
func (c *Config) Serve(ctx context.Context, w load.Workload, u Use) (load.Instance, error) {
	server, err := c.Open(ctx, &w, u)
	s := &serving{server: server, workload: w}
	for try := 0; err == nil && s.port == 0; try++ {
		if err = s.answer(ctx); err != nil && try+1 < portTries && strings.Contains(err.Error(), "could not create any TCP/IP sockets") {
			err = nil
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare workload %q: %w", w.Name, err), server.Close())
	}
	return s, nil
}

// answer starts the server on a free port.
func (s *serving) answer(ctx context.Context) error {
	if len(s.server.config.remote.Secret) == 0 {
		return errors.New("the load has no secret for its clients")
	}
	address, port, err := program.FreePort(s.workload.Remote.Address)
	if err != nil {
		return err
	}
	if address == "" {
		address = "*"
	}
	s.server.config.listen = listener{address, strconv.Itoa(port)}
	disk := program.DiskFolder(s.server.config.Disk)
	if err := s.server.Room.Make(disk); err != nil {
		return err
	}
	if err := s.server.Room.WriteFile(disk+"/"+accessFile, access); err != nil {
		return err
	}
	if err := s.server.Up(ctx); err != nil {
		return err
	}
	if err := s.publish(ctx); err != nil {
		return err
	}
	s.port = port
	return nil
}

// Names of what clients ask the server for, because only the agent of the server's VM can know it.
const (
	factSmallPages = "bragg.small_pages"
	factStorage    = "bragg.storage"
)

// publish sets the password of the clients, and what they are to know of the server.
func (s *serving) publish(ctx context.Context) error {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	command := s.server.Complete(s.server.psql(adminRole, ""))
	command.Args = append(command.Args, "--set=ON_ERROR_STOP=1")
	command.Stdin = strings.NewReader(fmt.Sprintf("SET standard_conforming_strings = on;\nALTER ROLE %s PASSWORD %s;\nALTER DATABASE %s SET %s = %s;\nALTER DATABASE %s SET %s = %s;\n",
		Role, quote(s.server.config.password()), Role, factSmallPages, quote(strconv.FormatBool(s.server.smallPages)), Role, factStorage, quote(strings.Join(s.server.storage, "\n"))))
	if _, err := s.server.RunKept(ctx, command); err != nil {
		return fmt.Errorf("let clients in: %w", err)
	}
	return nil
}

// readFacts reads what the server's agent published.
func (s *Server) readFacts(ctx context.Context) error {
	text, err := s.Query(ctx, "SELECT current_setting('"+factSmallPages+"'), current_setting('"+factStorage+"')")
	if err != nil {
		return err
	}
	pages, storage, _ := strings.Cut(text, "|")
	if s.smallPages = pages == "true"; storage != "" {
		s.storage = strings.Split(storage, "\n")
	}
	return nil
}

// Ports is the port of the server for each of its clients; see load.Server.
func (s *serving) Ports() []int {
	ports := make([]int, len(s.workload.Remote.Peers))
	for i := range ports {
		ports[i] = s.port
	}
	return ports
}

// Run waits until the server is stopped; it is not measured.
func (s *serving) Run(ctx context.Context, sink load.Sink) error {
	defer func() { _ = s.Close() }()
	return program.Serve(ctx, s.workload, sink, "PostgreSQL", s.server.Ended())
}

// Close stops the server and lets other loads use its data.
func (s *serving) Close() error { return s.server.Close() }

// Outputs has the commands and the server's log; see load.Teller.
func (s *serving) Outputs() []load.Output { return s.server.Outputs("server.txt") }
