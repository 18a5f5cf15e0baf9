package mariadb

import (
	"context"
	"fmt"
	"strings"

	"github.com/braggdev/bragg/internal/load/database"
)

// Listen starts the server for clients on other VMs; see database.Listener.
func (s *Server) Listen(ctx context.Context, at database.Address) error {
	s.config.listen = at
	if err := s.Up(ctx); err != nil {
		return err
	}
	return s.publish(ctx)
}

// Taken reports whether another program has the port; see database.Listener.
func (*Server) Taken(err error) bool { return strings.Contains(err.Error(), "Bind on TCP/IP port") }

// factsTable has what clients ask the server for, because only the agent of the server's VM can know it.
const factsTable = "bragg_server"

// publish lets clients in by the secret of the load, with what they are to know of it.
func (s *Server) publish(ctx context.Context) error {
	client := Role + "@'%'"
	command := s.Complete(s.client(adminRole, ""))
	command.Stdin = strings.NewReader(strings.Join([]string{
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
		"CREATE OR REPLACE USER " + client + " IDENTIFIED BY " + database.Quote(s.config.Password()),
		"GRANT ALL ON " + Role + ".* TO " + client,
		"CREATE OR REPLACE TABLE " + Role + "." + factsTable + " (storage TEXT)",
		"INSERT INTO " + Role + "." + factsTable + " VALUES (" + database.Quote(strings.Join(s.storage, "\n")) + ")"}, ";\n") + ";\n")
	if _, err := s.RunKept(ctx, command); err != nil {
		return fmt.Errorf("let clients in: %w", err)
	}
	return nil
}

// readFacts reads what the server's agent published.
func (s *Server) readFacts(ctx context.Context) error {
	storage, err := s.Query(ctx, "SELECT storage FROM "+factsTable)
	if storage != "" {
		s.storage = strings.Split(storage, "\n")
	}
	return err
}
