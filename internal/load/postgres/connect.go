package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Conn is a connection of this process to the server, with statements prepared once. Only one goroutine uses it.
type Conn struct {
	server *Server
	conn   *pgconn.PgConn
}

// connectMax bounds how long a connection may take.
const connectMax = 30 * time.Second

// Connect connects as Role, or as the user of the endpoint.
func (s *Server) Connect(ctx context.Context) (*Conn, error) {
	config, err := pgconn.ParseConfig(s.connectionText())
	if err != nil {
		return nil, errors.New("connect: the settings of the endpoint are invalid") // the error may quote them
	}
	ctx, cancel := context.WithTimeout(ctx, connectMax)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, s.Conceal(fmt.Errorf("connect: %w", err))
	}
	return &Conn{s, conn}, nil
}

var quoteValue = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

func (s *Server) connectionText() string {
	if !s.config.Elsewhere() {
		return fmt.Sprintf("host=%s/run user=%s dbname=%s sslmode=disable", s.Room.Reach(s.config.Disk), Role, Role)
	}
	var words []string
	for key, value := range s.settings() {
		words = append(words, key+"='"+quoteValue.Replace(value)+"'")
	}
	return strings.Join(words, " ")
}

// Prepare prepares a statement under a name.
func (c *Conn) Prepare(ctx context.Context, name, statement string) error {
	_, err := c.conn.Prepare(ctx, name, statement, nil)
	return c.server.Conceal(err)
}

// Set changes a setting of the connection.
func (c *Conn) Set(ctx context.Context, setting Setting) error {
	return c.server.Conceal(c.conn.Exec(ctx, "SET "+setting.Name+" = "+setting.Value).Close())
}

var binary = []int16{1} // of all parameters

// Execute runs a prepared statement with binary parameters in a transaction of its own, and waits for its end.
func (c *Conn) Execute(ctx context.Context, name string, parameters ...[]byte) error {
	return c.server.Conceal(c.conn.ExecPrepared(ctx, name, parameters, binary, nil).Read().Err)
}

// Row runs a prepared statement without parameters, and returns the first row of its answer as text.
func (c *Conn) Row(ctx context.Context, name string) ([]string, error) {
	answer := c.conn.ExecPrepared(ctx, name, nil, nil, nil).Read()
	if answer.Err != nil {
		return nil, c.server.Conceal(answer.Err)
	}
	if len(answer.Rows) == 0 {
		return nil, errors.New("the answer has no row")
	}
	var texts []string
	for _, value := range answer.Rows[0] {
		texts = append(texts, string(value))
	}
	return texts, nil
}

// State is the class of an error that the server reported, "" for any other.
func State(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return "sqlstate-" + answer.Code
	}
	return ""
}

// Open reports whether the connection can still be used.
func (c *Conn) Open() bool { return !c.conn.IsClosed() }

// Close ends the connection.
func (c *Conn) Close() {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.conn.Close(ctx)
}
