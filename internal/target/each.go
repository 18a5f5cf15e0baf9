package target

import (
	"context"
	"errors"
	"sync"
)

// eachMax bounds how many VMs one call of a provider processes concurrently.
const eachMax = 8

// Each calls do with every index below n, several concurrently, and returns all errors. It starts no call after ctx has
// ended.
func Each(ctx context.Context, n int, do func(i int) error) error {
	return errors.Join(EachOf(ctx, n, eachMax, do)...)
}

// EachOf is Each with at most the given number of calls at a time, and returns the error of each call; nil where there is none.
func EachOf(ctx context.Context, n, most int, do func(i int) error) []error {
	errs := make([]error, n)
	slots := make(chan struct{}, most)
	var all sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	return errs
}
