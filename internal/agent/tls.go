package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLS names the files that make up one end of a mutually authenticated connection. Authority signs the other end: one
// per run, so that nothing outside the run can speak to an agent.
type TLS struct {
	Certificate string `json:"certificate,omitempty"`
	Key         string `json:"key,omitempty"`
	Authority   string `json:"authority,omitempty"`
}

// Config returns the settings for either end: TLS 1.3, and a peer that Authority signed. ServerName is what a client
// expects in the agent's certificate.
func (t TLS) Config(serverName string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read certificate %q: %w", t.Certificate, err)
	}
	text, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authority %q: no certificate in it", t.Authority)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ServerName: serverName,
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// listenTLS serves controllers that come over the network.
func (s *Server) listenTLS(ctx context.Context, c Config) error {
	settings, err := c.TLS.Config("")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for controllers: %w", err)
	}
	if err := s.ServeListener(ctx, tls.NewListener(l, settings)); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
