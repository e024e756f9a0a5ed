"""A directory for tests: the configuration of Debian's slapd, its people, and its certificates.

ada, bob, carl and dora may log in, dora as an administrator; olga is outside of the group that lets in, eve and `games`
have ids or names of a system. All have one key.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

SUFFIX = "dc=example,dc=org"
LETS_IN = f"cn=gpu,{SUFFIX}"
PASSWORD = "correct horse, battery=staple;"
_SLAPD = f"""include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' EQUALITY octetStringMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
objectclass ( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY MAY ( sshPublicKey $ uid ) )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCertificateFile {{files}}/server.pem
TLSCertificateKeyFile {{files}}/server.key
security tls=1
disallow bind_anon
database mdb
suffix "{SUFFIX}"
rootdn "cn=reader,{SUFFIX}"
rootpw "{PASSWORD}"
directory /var/lib/ldap
overlay memberof
"""
_TOP = f"""dn: {SUFFIX}
objectClass: dcObject
objectClass: organization
dc: example
o: example

dn: cn=people,{SUFFIX}
objectClass: posixGroup
cn: people
gidNumber: 30001

dn: cn=operators,{SUFFIX}
objectClass: posixGroup
cn: operators
gidNumber: 30002
memberUid: dora
"""
_PERSON = """
dn: uid={name},{suffix}
objectClass: inetOrgPerson
objectClass: posixAccount
objectClass: shadowAccount
objectClass: ldapPublicKey
cn: {name}
sn: {name}
uid: {name}
uidNumber: {uid}
gidNumber: 30001
homeDirectory: /somewhere/{name}
sshPublicKey: {key}
"""
_PEOPLE = {"ada": 20001, "bob": 20002, "carl": 20003, "dora": 20004, "olga": 20005, "eve": 999, "games": 20006}
_OUTSIDE = ("olga",)


def slapd_conf(files: Path) -> str:
    """slapd.conf. `files`: where slapd reads server.pem and server.key."""
    return _SLAPD.format(files=files)


def entries(key: str) -> str:
    """Everybody and their groups, as ldapadd reads them. `key`: the public half."""
    people = "".join(
        _PERSON.format(name=name, uid=uid, suffix=SUFFIX, key=key.strip()) for name, uid in _PEOPLE.items()
    )
    members = "".join(f"member: uid={name},{SUFFIX}\n" for name in _PEOPLE if name not in _OUTSIDE)
    return f"{_TOP}{people}\ndn: {LETS_IN}\nobjectClass: groupOfNames\ncn: gpu\n{members}"


def make_certificates(directory: Path, host: str, authorities: Sequence[str] = ("ca",)) -> None:
    """Write a certificate for the host, server.pem and server.key, signed by the first of these new authorities."""

    def openssl(*words: str) -> None:
        subprocess.run(("openssl", *words), cwd=directory, check=True, capture_output=True)

    for name in authorities:
        new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}")
        openssl(*new, "-keyout", f"{name}.key", "-out", f"{name}.pem")
    (directory / "names").write_text(f"subjectAltName=DNS:{host}\n", encoding="utf-8")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", "server.key", "-out", "csr")
    authority = ("-CA", f"{authorities[0]}.pem", "-CAkey", f"{authorities[0]}.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", "csr", *authority, "-days", "2", "-extfile", "names", "-out", "server.pem")
