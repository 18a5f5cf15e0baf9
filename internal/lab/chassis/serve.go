package chassis

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Service is the Redfish service of one machine on loopback, until Close.
type Service struct {
	Address string // 127.0.0.1:port

	server *http.Server
	served chan struct{}
}

// Serve starts the service of a machine, for the user User with that password.
func Serve(m Machine, password string, c Chassis, certificate tls.Certificate) (*Service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.BMC = netip.MustParseAddr("127.0.0.1")
	s := &Service{Address: l.Addr().String(), served: make(chan struct{})}
	s.server = &http.Server{
		Handler: Redfish(m, password, c), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() {
		defer close(s.served)
		_ = s.server.ServeTLS(l, "", "")
	}()
	return s, nil
}

// Close ends the service.
func (s *Service) Close() {
	_ = s.server.Close()
	<-s.served
}

// Switch does a reset of a machine that has no system of its own, so that a graceful shutdown is a cut.
func Switch(kind Reset, now Power, set func(on bool) error) error {
	if err := CheckReset(kind); err != nil {
		return err
	}
	switch kind {
	case ResetOn, ResetForceOn:
		return set(true)
	case ResetForceRestart, ResetPowerCycle:
		if err := set(false); err != nil {
			return err
		}
		return set(true)
	}
	return set(kind == ResetPushPowerButton && now == PowerOff)
}
