:plugin use tinkerpop.server
:remote connect tinkerpop.server REMOTE
:> gmodern.V().count()
:> gmodern.V().has('name', 'marko').out('created').values('name')
:submit gmodern.V().hasLabel('person').values('age').sum()
:> gmodern.V(1).valueMap()
:> gmodern.E(9)
:> gmodern.V(1).out('created').path().by('name')
:remote console
gmodern.V().hasLabel('software').order().by('name').values('name')
gmodern.V(1).next()
:remote console
:remote close
:remote connect tinkerpop.server REMOTE session
:> ggraph.addV('scratch').property('name', 'one').values('name')
:> ggraph.V().hasLabel('scratch').count()
:> ggraph.tx().rollback()
:> ggraph.V().hasLabel('scratch').count()
:> ggraph.addV('scratch').property('name', 'two').values('name')
:> ggraph.tx().commit()
:remote close
:remote connect tinkerpop.server REMOTE
:> ggraph.V().hasLabel('scratch').values('name')
:> ggraph.V().hasLabel('scratch').drop()
:> ggraph.V().hasLabel('scratch').count()
:exit
