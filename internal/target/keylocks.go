package target

import "sync"

// KeyLocks are mutexes by name, such as one for each VM. The zero value is ready for use.
type KeyLocks struct {
	mu  sync.Mutex
	all map[string]*sync.Mutex
}

// Lock locks the mutex of a name, and returns the function that unlocks it.
func (l *KeyLocks) Lock(key string) func() {
	l.mu.Lock()
	if l.all == nil {
		l.all = map[string]*sync.Mutex{}
	}
	m := l.all[key]
	if m == nil {
		m = &sync.Mutex{}
		l.all[key] = m
	}
	l.mu.Unlock()
	m.Lock()
	return m.Unlock
}
