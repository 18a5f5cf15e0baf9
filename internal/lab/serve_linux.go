package lab

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/wait"
)

const (
	headerTimeLimit = 30 * time.Second
	headerBytesMax  = 64 << 10
)

func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeLimit, ReadTimeout: controlTimeLimit, IdleTimeout: controlTimeLimit,
		MaxHeaderBytes: headerBytesMax, ErrorLog: log.New(os.Stderr, "", log.LstdFlags),
	}
}

// serveControl answers the calls of control.go on a socket in the lab's folder, which root alone can enter.
func (k *keeper) serveControl() error {
	listener, err := net.Listen("unix", k.lab.controlSocket())
	if err != nil {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hosts", func(w http.ResponseWriter, _ *http.Request) {
		all := []HostStatus{}
		for _, h := range k.hosts {
			all = append(all, h.status())
		}
		_ = json.NewEncoder(w).Encode(all) // the client is gone when it fails
	})
	mux.HandleFunc("POST /hosts/{name}/reset", k.act(func(h *host, q *http.Request) error {
		return h.Reset(q.Context(), chassis.Reset(q.FormValue("kind")))
	}))
	mux.HandleFunc("POST /hosts/{name}/link", k.act(func(h *host, q *http.Request) error {
		return setLink(h.Name, q.FormValue("up") == "true")
	}))
	k.listen(listener, mux)
	return nil
}

func (k *keeper) act(do func(*host, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		for _, h := range k.hosts {
			if h.Name != q.PathValue("name") {
				continue
			}
			if err := do(h, q); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		http.Error(w, "no such host", http.StatusNotFound)
	}
}

// listen serves until the keeper ends, and with it everything.
func (k *keeper) listen(l net.Listener, h http.Handler) {
	go func() {
		err := newServer(h).Serve(l)
		fmt.Fprintf(os.Stderr, "serve %s: %v\n", l.Addr(), err)
	}()
}

// serveBMCs starts the BMCs of all hosts, in the switch's network: they have power when hosts have none.
func (k *keeper) serveBMCs(ctx context.Context) error {
	password, err := readSmall(k.lab.BMCPasswordFile())
	if err != nil {
		return err
	}
	for _, h := range k.hosts {
		certificate, err := tls.LoadX509KeyPair(filepath.Join(h.Dir, "bmc.crt"), filepath.Join(h.Dir, "bmc.key"))
		if err != nil {
			return fmt.Errorf("serve the BMC of host %q: %w", h.Name, err)
		}
		listener, err := tls.Listen("tcp", net.JoinHostPort(h.BMC.String(), "443"), &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12,
		})
		if err != nil {
			return fmt.Errorf("serve the BMC of host %q: %w", h.Name, err)
		}
		k.listen(listener, chassis.Redfish(h.machine(), string(password), h))
		if k.lab.IPMI {
			if err := k.serveIPMI(ctx, h, string(password)); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveIPMI starts OpenIPMI's simulator for a host. It switches power through runChassis.
func (k *keeper) serveIPMI(ctx context.Context, h *host, password string) error {
	server, err := findProgram("ipmi_sim")
	if err != nil {
		return err
	}
	dir := filepath.Join(h.Dir, "ipmi")
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "state"), 0o700),
		os.WriteFile(filepath.Join(dir, "lan.conf"), []byte(chassis.IPMILAN(h.machine(), password, Verb, roleChassis, k.lab.Dir, h.Name)), 0o600),
		os.WriteFile(filepath.Join(dir, "bmc.emu"), []byte(chassis.IPMIController(h.machine())), 0o600),
	)
	if err != nil {
		return fmt.Errorf("serve the BMC of host %q: %w", h.Name, err)
	}
	supervise(ctx, k.nursery, server, "--config-file", filepath.Join(dir, "lan.conf"), "--command-file", filepath.Join(dir, "bmc.emu"),
		"--state-dir", filepath.Join(dir, "state"), "--nostdio")
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeLimit, errors.New("it does not answer"))
	defer cancel()
	if err := waitForIPMI(ctx, net.JoinHostPort(h.BMC.String(), "623")); err != nil {
		return fmt.Errorf("start ipmi_sim: %w", err)
	}
	return nil
}

// waitForIPMI asks a BMC whether it is there, with a presence ping (ASF 2.0, section 3.2.4.2).
func waitForIPMI(ctx context.Context, address string) error {
	ping := []byte{6, 0, 0xff, 6, 0, 0, 0x11, 0xbe, 0x80, 0, 0, 0}
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "udp", address)
		if err != nil {
			return err
		}
		err = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
		if err == nil {
			_, err = conn.Write(ping)
		}
		if err == nil {
			_, err = conn.Read(make([]byte, 64))
		}
		if err = errors.Join(err, conn.Close()); err == nil {
			return nil
		}
		if wait.For(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// runChassis is what ipmi_sim calls: "get power …", "set power 0 …", "check …". It prints "power:1" for a question.
func runChassis(socketDir, name string, words []string, out io.Writer) error {
	l, err := load(filepath.Dir(socketDir), filepath.Base(socketDir))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeLimit)
	defer cancel()
	return chassis.Command(words, out, chassis.IPMI{
		Power: func() (chassis.Power, error) {
			all, err := l.Status(ctx)
			if err != nil {
				return "", err
			}
			for _, h := range all {
				if h.Name == name {
					return h.Power, nil
				}
			}
			return "", fmt.Errorf("no host %q", name)
		},
		Reset: func(kind chassis.Reset) error { return l.Reset(ctx, name, kind) },
	})
}
