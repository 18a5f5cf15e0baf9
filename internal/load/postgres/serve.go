package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/database"
	"github.com/braggdev/bragg/internal/load/program"
)

const (
	accessFile = "access.conf"
	// access lets Role of other VMs in by the secret of the load, and everyone who can enter the folder of the socket.
	access = "local all all trust\nhost " + Role + " " + Role + " all scram-sha-256\n"
)

// Serve starts the server of a load for its clients on other VMs. The data is that of the prefill with the same Use.
func (c *Config) Serve(ctx context.Context, w load.Workload, u Use) (load.Instance, error) {
	server, err := c.Open(ctx, &w, u)
	return database.Serve(ctx, w, "PostgreSQL", server, err)
}

// Listen starts the server for clients on other VMs; see database.Listener.
func (s *Server) Listen(ctx context.Context, at database.Address) error {
	s.config.listen = at
	disk := program.DiskFolder(s.config.Disk)
	if err := s.Room.Make(disk); err != nil {
		return err
	}
	if err := s.Room.WriteFile(disk+"/"+accessFile, access); err != nil {
		return err
	}
	if err := s.Up(ctx); err != nil {
		return err
	}
	return s.publish(ctx)
}

// Taken reports whether another program has the port; see database.Listener.
func (*Server) Taken(err error) bool {
	return strings.Contains(err.Error(), "could not create any TCP/IP sockets")
}

// Names of what clients ask the server for, because only the agent of the server's VM can know it.
const (
	factSmallPages = "bragg.small_pages"
	factStorage    = "bragg.storage"
)

// publish sets the password of the clients, and what they are to know of the server.
func (s *Server) publish(ctx context.Context) error {
	command := s.Complete(s.psql(adminRole, ""))
	command.Args = append(command.Args, "--set=ON_ERROR_STOP=1")
	command.Stdin = strings.NewReader(fmt.Sprintf("SET standard_conforming_strings = on;\nALTER ROLE %s PASSWORD %s;\nALTER DATABASE %s SET %s = %s;\nALTER DATABASE %s SET %s = %s;\n",
		Role, database.Quote(s.config.Password()), Role, factSmallPages, database.Quote(strconv.FormatBool(s.smallPages)),
		Role, factStorage, database.Quote(strings.Join(s.storage, "\n"))))
	if _, err := s.RunKept(ctx, command); err != nil {
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
