# A plugin in the style of plugins for StarCluster 0.95, converted by 2to3.
import posixpath

from starcluster import exception
from starcluster.clustersetup import DefaultClusterSetup
from starcluster.logger import log
from starcluster.utils import print_timing


class OldStyle(DefaultClusterSetup):
    """
    [plugin oldstyle]
    setup_class = oldstyle.OldStyle
    motd = Hello
    """

    def __init__(self, motd="", shared_dir="/home/shared", **kwargs):
        super(OldStyle, self).__init__(**kwargs)
        self.motd = motd
        self.shared_dir = shared_dir
        log.debug('motd = %s' % motd)

    def _setup_node(self, node, user):
        nssh = node.ssh
        motd = nssh.remote_file('/etc/motd.old', 'w')
        motd.write("%s from %s (%s)\n" % (self.motd, node.alias, node.private_ip_address))
        motd.close()
        nssh.execute('test -d /opt/old || mkdir /opt/old', ignore_exit_status=True)
        entry = node.getpwnam(user)
        if not nssh.path_exists('/opt/old/%s' % user):
            nssh.mkdir('/opt/old/%s' % user)
        nssh.chown(entry.pw_uid, entry.pw_gid, '/opt/old/%s' % user)
        nssh.chmod(0o750, '/opt/old/%s' % user)

    @print_timing("OldStyle")
    def run(self, nodes, master, user, user_shell, volumes):
        log.info("Running OldStyle plugin")
        aliases = [n.alias for n in nodes]
        mnode = [n for n in nodes if n.is_master()][0]
        assert mnode.alias == master.alias
        for node in nodes:
            self.pool.simple_job(self._setup_node, (node, user), jobid=node.alias)
        self.pool.wait(numtasks=len(nodes))
        for node in nodes:
            self.pool.simple_job(node.ssh.execute, 'touch /tmp/old-style', jobid=node.alias)
        self.pool.wait(len(nodes))
        try:
            master.ssh.execute('ls /not/there')
        except exception.RemoteCommandFailed as e:
            log.debug('expected: %s' % e)
        home = master.getpwnam(user).pw_dir
        master.ssh.switch_user(user)
        master.ssh.execute('echo %s > %s' % (','.join(aliases), posixpath.join(home, 'nodes')))
        master.ssh.switch_user('root')
        if not master.ssh.isdir(self.shared_dir):
            master.ssh.makedirs(self.shared_dir)
        lines = master.ssh.get_remote_file_lines('/etc/hosts', 'node[0-9]+')
        assert len(lines) == len(nodes) - 1, lines
        ncpus = sum(map(lambda n: n.num_processors, nodes))
        mem = master.memory
        queues = master.ssh.execute('qstat -f')
        out = master.ssh.remote_file(posixpath.join(self.shared_dir, 'report'), 'w')
        out.write('%d %s\n' % (ncpus, mem > 0))
        out.write('\n'.join(queues))
        out.close()

    def on_add_node(self, node, nodes, master, user, user_shell, volumes):
        log.info("Adding node %s" % node.alias)
        self._setup_node(node, user)
        master.ssh.execute('echo added %s >> %s/changes' % (node.alias, self.shared_dir))

    def on_remove_node(self, node, nodes, master, user, user_shell, volumes):
        master.ssh.execute('echo removed %s >> %s/changes' % (node.alias, self.shared_dir))
