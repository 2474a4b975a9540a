package verifier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"rebuild-check.dev/rebuild-check/verifier/apply"
	"rebuild-check.dev/rebuild-check/verifier/cluster"
	"rebuild-check.dev/rebuild-check/verifier/evidence"
	"rebuild-check.dev/rebuild-check/verifier/scenario"
)

// place is a clean cluster, and what was in it before the first repeat.
type place struct {
	cluster *cluster.Cluster
	client  *apply.Client
	before  evidence.Inventory
}

// raise makes a place in the background. The channel delivers it once, or nil when that failed; the
// reason is recorded.
func (r *run) raise(ctx context.Context) <-chan *place {
	coming := make(chan *place, 1)
	name := cluster.NewName()
	done := r.stage("cluster " + name)
	go func() {
		p, err := r.makePlace(ctx, name)
		if err != nil {
			done("%v", err)
			r.leftover(err)
			r.trouble(ctx, "cluster", err)
			coming <- nil
			return
		}
		done("Kubernetes %s, %d nodes", p.cluster.Facts.Version, len(p.cluster.Facts.Nodes))
		coming <- p
	}()
	return coming
}

func (r *run) makePlace(ctx context.Context, name string) (*place, error) {
	made, err := cluster.Create(ctx, name, cluster.Options{NodeImage: r.opts.NodeImage, Nodes: r.opts.Nodes, Mirrors: r.opts.Mirrors})
	if err != nil {
		return nil, err
	}
	p := &place{cluster: made}
	if err := p.prepare(ctx, r.opts.Nodes); err != nil {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		return nil, errors.Join(err, made.Close(closeCtx))
	}
	return p, nil
}

// platform is the nodes': kind runs them on the engine's own kernel, which is taken to be this host's
// and then checked.
func platform() string { return "linux/" + runtime.GOARCH }

// prepare waits for the nodes and takes the inventory that every repeat must come back to.
func (p *place) prepare(ctx context.Context, nodes int) (err error) {
	if p.client, err = apply.Connect(p.cluster.Kubeconfig); err != nil {
		return err
	}
	if p.cluster.Facts.Version, p.cluster.Facts.Nodes, err = p.client.WaitReady(ctx, nodes); err != nil {
		return err
	}
	for _, node := range p.cluster.Facts.Nodes {
		if node.Platform != platform() {
			return &cluster.Trouble{
				Code: "cluster-failed", Err: fmt.Errorf("node %s is %s, and the images were resolved for %s", node.Name, node.Platform, platform()),
				Do: "run it on a host of the engine's own platform",
			}
		}
	}
	p.before = p.client.Inventory(ctx)
	if len(p.before.Unread) > 0 {
		return fmt.Errorf("listing the new cluster: %s", p.before.Unread[0])
	}
	return ctx.Err()
}

// leave removes a place, or keeps it where the user asked for that.
func (r *run) leave(ctx context.Context, p *place) {
	if p == nil {
		return
	}
	if r.opts.KeepCluster && ctx.Err() == nil {
		r.result.Kept = append(r.result.Kept, p.cluster.KubeconfigPath)
		return
	}
	done := r.stage("delete " + p.cluster.Facts.Name)
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if err := p.cluster.Close(closeCtx); err != nil {
		done("%v", err)
		r.leftover(err)
		return
	}
	done("removed")
}

// leftover records what could not be removed.
func (r *run) leftover(err error) {
	var left *cluster.Leftover
	if errors.As(err, &left) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.facts.Leftovers = append(r.facts.Leftovers, left.Command)
	}
}

// repeats runs the declared repeats in the place, each from clean, and leaves it. It ends with a
// repeat that was refused or did not settle: the next would be the same.
func (r *run) repeats(ctx context.Context, p *place) {
	count := scenario.Repeats(r.facts.Experiments)
	for number := 1; number <= count && p != nil; number++ {
		if n := len(r.facts.Clusters); n == 0 || r.facts.Clusters[n-1].Name != p.cluster.Facts.Name {
			r.facts.Clusters = append(r.facts.Clusters, p.cluster.Facts)
		}
		repeat := r.repeat(ctx, p, number, number == count)
		r.facts.Repeats = append(r.facts.Repeats, repeat)
		if !repeat.Ended {
			break
		}
		if repeat.Cleaning.NewCluster && number < count {
			r.leave(ctx, p)
			p = <-r.raise(ctx)
		}
	}
	r.leave(ctx, p)
}

// settleLimit shares the timeout among the repeats, less what is kept back for the rest.
func (r *run) settleLimit(repeats int) time.Duration {
	reserve := min(2*time.Minute, r.opts.Timeout/4)
	return (r.opts.Timeout - reserve) / time.Duration(max(1, repeats))
}
