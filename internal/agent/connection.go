package agent

import (
	"net"
	"sync"
)

// oneConn is a listener that yields one connection and then waits until that is closed.
type oneConn struct {
	conn net.Conn
	once sync.Once
	gone chan struct{} // closed with the connection
	next chan net.Conn
}

func newOneConn(conn net.Conn) *oneConn {
	l := &oneConn{gone: make(chan struct{}), next: make(chan net.Conn, 1)}
	l.conn = &watchedConn{Conn: conn, closed: func() { l.once.Do(func() { close(l.gone) }) }}
	l.next <- l.conn
	return l
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.next:
		return c, nil
	default:
	}
	<-l.gone
	return nil, net.ErrClosed
}

// Close ends Accept. It closes the connection too: there is no other way to leave.
func (l *oneConn) Close() error { return l.conn.Close() }

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// watchedConn tells when it is closed.
type watchedConn struct {
	net.Conn
	closed func()
}

func (c *watchedConn) Close() error {
	err := c.Conn.Close()
	c.closed()
	return err
}
